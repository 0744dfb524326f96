# Completion of fish for MDFS: the program itself says what may come next.
# SPDX-License-Identifier: Apache-2.0

function __mdfs_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in (command $words[1] --complete $words[2..] "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$current"
        else
            echo $line
        end
    end
end

for program in mdfs mkmdfs mdfsck mkfs.mdfs fsck.mdfs mdfs-sim
    complete -c $program -f -a '(__mdfs_complete)'
end
