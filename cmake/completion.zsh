#compdef kzero
# Read by zsh's compinit from a folder in fpath; the program knows its commands and keys.
eval "$(kzero completion zsh 2>/dev/null)"
