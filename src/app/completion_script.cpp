#include "app/completion_script.hpp"

#include <filesystem>

namespace kzero::app {

namespace {

constexpr const char* bash_script = R"(_kzero() {
  local found word=${COMP_WORDS[COMP_CWORD]#=}
  mapfile -t found < <(PROGRAM __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  found=("${found[@]%%$'\t'*}")
  if [[ ${found[0]} == :* ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -o plusdirs -X "!*${found[0]:1}" -- "$word")
  else
    [[ ${found[0]} == *= ]] && compopt -o nospace
    mapfile -t COMPREPLY < <(compgen -W "${found[*]}" -- "$word")
  fi
}
complete -F _kzero kzero
)";

constexpr const char* zsh_script = R"(#compdef kzero
_kzero() {
  local -a found=("${(@f)$(PROGRAM __complete "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  local -a described=("${(@)${(@)found//:/\\:}/$'\t'/:}") space
  [[ -n $found ]] || return 1
  if [[ $found[1] == :* ]]; then
    compset -P "${(b)found[1]#*$'\t'}"
    _files -g "*${${found[1]%%$'\t'*}#:}"
  else
    [[ $found[1] == *=$'\t'* ]] && space=(-S '')
    _describe argument described "${space[@]}"
  fi
}
if [[ -n ${zsh_eval_context[(r)loadautofunc]} ]]; then _kzero "$@"; else compdef _kzero kzero; fi
)";

constexpr const char* fish_script = R"(function __kzero
  set -l word (commandline -ct)
  set -l found (PROGRAM __complete (commandline -opc)[2..-1] "$word" 2>/dev/null)
  if string match -q ':*' -- "$found[1]"
    __fish_complete_suffix (string match -r '^:([^\t]*)' -- $found[1])[2]
  else
    printf '%s\n' $found
  end
end
complete -c kzero -f -a '(__kzero)'
)";

/// Escapes single quotes for a text in single quotes: don't becomes don'\''t.
std::string quoted(const std::string& text) {
  std::string escaped = "'";
  for (const char c : text) {
    if (c == '\'') escaped += "'\\'";
    escaped += c;
  }
  return escaped + "'";
}

}  // namespace

// OpenBLAS may start a thread for each core when it is loaded, which would take longer than the
// answer.
std::string script_for(const std::string& shell, const std::string& program) {
  const bool is_path = program.find('/') != std::string::npos;
  const std::string path = is_path ? std::filesystem::absolute(program).string() : program;
  std::string script = shell == "bash" ? bash_script : shell == "zsh" ? zsh_script : fish_script;
  const std::string mark = "PROGRAM";
  return script.replace(script.find(mark), mark.size(), "OPENBLAS_NUM_THREADS=1 " + quoted(path));
}

}  // namespace kzero::app
