# complete.zsh FILE LINE... prints what zsh offers in place of the last word of each line, with the completions of a file. Only an
# interactive zsh completes: one runs at a terminal of its own, and says of each word that is added which it is.
zmodload zsh/zpty
zpty z zsh -f -i
() {
	zpty -w z source $1
	local line
	repeat 20; do
		zpty -r z line
		[[ $line == READY* ]] && return
	done
	exit 2
} =( <<< '
PROMPT=
autoload -Uz compinit
compinit -u -D
source '$1'
bindkey "^M" undefined
bindkey "^J" undefined
bindkey "^I" complete-word
before () { print -r - MARK; compprefuncs=(before) }
after () { print -r - MARK; comppostfuncs=(after) }
compprefuncs=(before)
comppostfuncs=(after)
zstyle ":completion:*" insert-tab false
compadd () {
	if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
		builtin compadd "$@"
		return
	fi
	typeset -a hits
	builtin compadd -A hits "$@"
	local hit
	for hit in $hits; do print -r - "WORD $hit"; done
	builtin compadd "$@"
}
print READY')
for ask in "${@:2}"; do
	zpty -w z $'\025'"$ask"$'\t'
	marks=0
	while zpty -r z line; do
		line=${${line//$'\r'}%$'\n'}
		case $line in
		*MARK) (( ++marks == 2 )) && break ;;
		*WORD\ *) print -r - ${line#*WORD } ;;
		esac
	done
	print -r - --
done
