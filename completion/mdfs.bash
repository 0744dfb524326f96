# Completion of bash for MDFS: the program itself says what may come next.
# SPDX-License-Identifier: Apache-2.0

_mdfs() {
  # Bash splits words at = and :, which the program does not. So the line is split again, and what bash has is cut off.
  local line=${COMP_LINE:0:COMP_POINT} words word head
  read -a words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  word=${words[-1]}
  head=${word%"${word##*[=:]}"}
  COMPREPLY=()
  compopt +o default +o nospace 2>/dev/null
  while IFS=$'\t' read -r word _; do
    if [ "$word" = :files ]; then
      compopt -o default 2>/dev/null
    else
      COMPREPLY+=("${word#"$head"}")
      case $word in *[=:]) compopt -o nospace 2>/dev/null ;; esac
    fi
  done < <("${words[0]}" --complete "${words[@]:1}" 2>/dev/null)
}
complete -F _mdfs mdfs mkmdfs mdfsck mkfs.mdfs fsck.mdfs mdfs-sim
