package main

// Help of the commands: examples, which a test runs through the parser, and what an exit status means where that is not
// plain. What is indented is shown as it is.

const statuses = `Exit status: 0 when everything went well, 1 when the program failed, 2 for a command line that cannot be run.

Examples:

  airlock arena --for 10s
  airlock run examples/worlds/fountain.world --steps 400
  airlock pools pools/arena.pools.ron
  airlock stress --scenario sync --for 5s
  airlock completion bash

A command that is interrupted, by Ctrl-C or SIGTERM, ends in order; a second Ctrl-C does not wait. So does one whose output nobody reads any more, which is no failure.`

func (commands) Help() string { return statuses }

func (*arenaCommand) Help() string {
	return `Exit status: 0 after --for or Ctrl-C, 1 if something failed or the totals do not add up.

Examples:

  airlock arena
  airlock arena --bots 8 --for 10s
  airlock arena --port 0 --rate 120 --seed 7
  airlock arena --for 10s --journal /tmp/arena
  airlock arena --flight /tmp/arena-flights`
}

func (*replayCommand) Help() string {
	return `Exit status: 0 if every frame is identical, 1 if one differs, or the journal cannot be read.

Examples:

  airlock replay /tmp/arena
  airlock replay --hashes /tmp/arena
  airlock replay --json /tmp/arena`
}

func (*poolsCommand) Help() string {
	return `Exit status: 0 if all files are sound, 1 if one is not. With --watch, 0 after Ctrl-C, 1 when the server does not answer.

Examples:

  airlock pools pools/arena.pools.ron
  airlock pools --json pools/arena.pools.ron
  airlock pools - < pools/arena.pools.ron
  airlock pools --watch http://127.0.0.1:7701
  airlock pools --watch 127.0.0.1:7701 --every 250ms --json`
}

func (*runCommand) Help() string {
	return `Exit status: 0 when all steps are done, 1 if the file is no good, the backends differ, or the run was interrupted: it ends after the step it is in, and prints the state that it has come to.

Examples:

  airlock run examples/worlds/fountain.world --steps 400 --states none --hash --cross-check
  airlock run examples/worlds/fountain.world --steps 400 --every 100 --json
  airlock run examples/worlds/predators.world --steps 1500 --states none --plot predators.svg --slots rabbits,foxes`
}

func (*checkCommand) Help() string {
	return `Exit status: 0 if all files are sound, 1 if one is not.

Examples:

  airlock check examples/worlds/fountain.world examples/worlds/predators.world
  airlock check --json examples/worlds/fountain.world`
}

func (*fmtCommand) Help() string {
	return `Exit status: 0; 1 if a file is no good, or with --check if one is laid out otherwise.

Examples:

  airlock fmt examples/worlds/fountain.world
  airlock fmt -d examples/worlds/fountain.world
  airlock fmt -w examples/worlds/fountain.world
  airlock fmt --check examples/worlds/fountain.world`
}

func (*disasmCommand) Help() string {
	return `Exit status: 0, 1 if the file is no good.

Examples:

  airlock disasm examples/worlds/fountain.world`
}

func (*stressCommand) Help() string {
	return `Exit status: 0 without a violation, also when it was interrupted; 1 with one, and the command that repeats it.

Examples:

  airlock stress --list
  airlock stress --scenario sync --for 5s
  airlock stress --scenario soak --for 1h --write docs/RELIABILITY.md
  airlock stress --scenario batched --faults --seed 7 --json
  airlock stress --scenario paced --flight /tmp/stress-flights`
}

func (versionCommand) Help() string {
	return `Examples:

  airlock version
  airlock version --json`
}

func (*completionCommand) Help() string {
	return `Examples:

  airlock completion bash
  airlock completion zsh
  airlock completion fish

In bash, for this shell:

  source <(airlock completion bash)

In zsh, for each new one, if ~/.zfunc is in $fpath; and in fish:

  airlock completion zsh > ~/.zfunc/_airlock
  airlock completion fish > ~/.config/fish/completions/airlock.fish`
}
