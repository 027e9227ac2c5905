# Read by fish when kzero is completed for the first time; the program knows its commands and keys.
kzero completion fish 2>/dev/null | source
