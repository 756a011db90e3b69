package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Whose: ${enum}."`
}

// Run writes a script that knows every command and flag. It is made of the same declarations as the command line, so it
// knows what there is. What the values of a flag are its placeholder says, or else a tag complete.
func (c *completionCommand) Run(k *kong.Kong, stdout io.Writer) error {
	write := map[string]func(*strings.Builder, *kong.Application){"bash": completeBash, "zsh": completeZsh, "fish": completeFish}[c.Shell]
	var out strings.Builder
	write(&out, k.Model)
	_, err := io.WriteString(stdout, out.String())
	return err
}

// completed is what a shell completes a value to.
type completed struct {
	kind  string   // words, file, dir; none: nobody knows
	words []string // of the kind words
}

func completedOf(v *kong.Value) completed {
	switch kind := v.Tag.Get("complete"); {
	case strings.HasPrefix(v.Tag.PlaceHolder, "FILE"):
		return completed{kind: "file"}
	case v.Tag.PlaceHolder == "DIR":
		return completed{kind: "dir"}
	case kind == "scenario":
		return completed{"words", scenarioNames()}
	case kind != "":
		return completed{kind: kind}
	case v.Enum != "":
		return completed{"words", v.EnumSlice()}
	}
	return completed{kind: "none"}
}

// completedArgs is what the arguments of a command are completed to.
func completedArgs(c *kong.Node) completed {
	if len(c.Positional) == 0 {
		return completed{kind: "none"}
	}
	return completedOf(c.Positional[0])
}

// flagsOf are the flags of a command, --help among them.
func flagsOf(c *kong.Node) (list []*kong.Flag) {
	for _, group := range c.AllFlags(true) {
		list = append(list, group...)
	}
	return list
}

func spellings(f *kong.Flag) []string {
	if f.Short != 0 {
		return []string{"-" + string(f.Short), "--" + f.Name}
	}
	return []string{"--" + f.Name}
}

func completeBash(out *strings.Builder, app *kong.Application) {
	var names []string
	for _, c := range app.Children {
		names = append(names, c.Name)
	}
	fmt.Fprintf(out, `# Completion of airlock for bash. For this shell: source <(airlock completion bash)
_airlock() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= kind=none i
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} != -* ]]; then
			command=${COMP_WORDS[i]}
			break
		fi
	done
	case "$command $prev" in
`)
	value := func(pattern string, c completed) {
		fmt.Fprintf(out, "\t%s) kind=%s words='%s' ;;\n", pattern, c.kind, strings.Join(c.words, " "))
	}
	for _, c := range app.Children {
		for _, f := range flagsOf(c) {
			if f.IsBool() {
				continue
			}
			var patterns []string
			for _, s := range spellings(f) {
				patterns = append(patterns, "'"+c.Name+" "+s+"'")
			}
			value(strings.Join(patterns, "|"), completedOf(f.Value))
		}
	}
	out.WriteString("\t*)\n\tcase \"$command $cur\" in\n")
	for _, c := range app.Children {
		var flags []string
		for _, f := range flagsOf(c) {
			flags = append(flags, spellings(f)...)
		}
		value("'"+c.Name+" -'*", completed{"words", flags})
		value("'"+c.Name+" '*", completedArgs(c))
	}
	value("' -'*", completed{"words", []string{"--help"}})
	value("' '*", completed{"words", names})
	out.WriteString(`	esac
	;;
	esac
	COMPREPLY=()
	case $kind in
	words) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
	file) compopt -o default 2>/dev/null ;;
	dir) compopt -o dirnames 2>/dev/null ;;
	esac
}
complete -F _airlock airlock
`)
}

func completeZsh(out *strings.Builder, app *kong.Application) {
	quote := func(s string) string { // for _arguments and _describe, inside single quotes
		return strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `:`, `\:`, `'`, `'\''`).Replace(s)
	}
	action := func(c completed) string {
		switch c.kind {
		case "words":
			return "(" + strings.Join(c.words, " ") + ")"
		case "file":
			return "_files"
		case "dir":
			return "_files -/"
		}
		return " "
	}
	out.WriteString(`#compdef airlock
# Completion of airlock for zsh. Put it into a directory of $fpath as _airlock.
_airlock() {
	local context state state_descr line
	typeset -A opt_args
	_arguments -C '--help[Show context-sensitive help.]' '1:command:->command' '*::argument:->argument'
	case $state in
	command)
		local -a commands=(
`)
	for _, c := range app.Children {
		fmt.Fprintf(out, "\t\t\t'%s:%s'\n", c.Name, quote(c.Help))
	}
	out.WriteString("\t\t)\n\t\t_describe command commands\n\t\t;;\n\targument)\n\t\tcase $line[1] in\n")
	for _, c := range app.Children {
		fmt.Fprintf(out, "\t\t%s)\n\t\t\t_arguments", c.Name)
		for _, f := range flagsOf(c) {
			for _, s := range spellings(f) {
				fmt.Fprintf(out, " \\\n\t\t\t\t'%s", s)
				if !f.IsBool() {
					out.WriteString("=")
				}
				fmt.Fprintf(out, "[%s]", quote(f.Help))
				if !f.IsBool() {
					fmt.Fprintf(out, ":%s:%s", f.Name, action(completedOf(f.Value)))
				}
				out.WriteString("'")
			}
		}
		if len(c.Positional) > 0 {
			fmt.Fprintf(out, " \\\n\t\t\t\t'*:%s:%s'", c.Positional[0].Name, action(completedArgs(c)))
		}
		out.WriteString("\n\t\t\t;;\n")
	}
	out.WriteString(`		esac
		;;
	esac
}
if [[ $funcstack[1] == _airlock ]]; then
	_airlock "$@"
else
	compdef _airlock airlock
fi
`)
}

func completeFish(out *strings.Builder, app *kong.Application) {
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
	value := func(c completed) string {
		switch c.kind {
		case "words":
			return " -a " + quote(strings.Join(c.words, " "))
		case "file":
			return " -F"
		case "dir":
			return " -a '(__fish_complete_directories)'"
		}
		return ""
	}
	out.WriteString(`# Completion of airlock for fish. Put it into ~/.config/fish/completions/airlock.fish
complete -c airlock -f
complete -c airlock -n __fish_use_subcommand -l help -s h -d 'Show context-sensitive help.'
`)
	for _, c := range app.Children {
		fmt.Fprintf(out, "complete -c airlock -n __fish_use_subcommand -a %s -d %s\n", c.Name, quote(c.Help))
		in := "complete -c airlock -n '__fish_seen_subcommand_from " + c.Name + "'"
		for _, f := range flagsOf(c) {
			fmt.Fprintf(out, "%s -l %s", in, f.Name)
			if f.Short != 0 {
				fmt.Fprintf(out, " -s %c", f.Short)
			}
			if !f.IsBool() {
				c := completedOf(f.Value)
				if out.WriteString(" -r"); c.kind != "file" {
					out.WriteString("f") // else files of the command's arguments are offered, too
				}
				out.WriteString(value(c))
			}
			fmt.Fprintf(out, " -d %s\n", quote(f.Help))
		}
		if args := value(completedArgs(c)); args != "" {
			fmt.Fprintf(out, "%s%s\n", in, args)
		}
	}
}
