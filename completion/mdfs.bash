# Completion of bash for MDFS. Verbs and options come from --help of the program itself.
# SPDX-License-Identifier: Apache-2.0

_mdfs() {
  local current=${COMP_WORDS[COMP_CWORD]} words=() word help
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      -*) ;;
      *) [ ${#words[@]} -lt 2 ] && words+=("$word") ;;
    esac
  done
  local program=${COMP_WORDS[0]}
  if [ "${program##*/}" = mdfs ]; then
    case ${words[0]-} in
      '' | mount | umount) words=("${words[@]:0:1}") ;;
    esac
    if [ ${#words[@]} -eq 0 ]; then
      COMPREPLY=($(compgen -W 'mount umount volume image window defrag disk scrub --help --version' -- "$current"))
      return
    fi
  else
    words=()
  fi
  help=$("$program" "${words[@]}" --help 2>/dev/null) || return
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$(grep -oE -- '(^| |,)--?[a-z][a-z-]*' <<<"$help" | tr -d ' ,')" -- "$current"))
  elif [[ $help == *Subcommands:* ]]; then
    COMPREPLY=($(compgen -W "$(sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p' <<<"$help")" -- "$current"))
  fi
}
complete -o default -F _mdfs mdfs mkmdfs mdfsck
