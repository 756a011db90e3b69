# complete.fish FILE LINE... prints what fish offers in place of the last word of each line, with the completions of a file.
source $argv[1]
for line in $argv[2..]
    complete -C $line | string replace -r '\t.*' ''
    printf '%s\n' --
end
