// Command airlock runs the programs that show the engine at work, and declared worlds.
//
//	airlock arena [--port N] [--bots N] [--rate HZ] [--for D] [--seed N] [--pools FILE] [--journal DIR] [--flight DIR]
//		[--inspect ADDRESS|off] [--inspect-token TOKEN] [--inspect-remote]
//	airlock replay [--hashes] [--json] DIR
//	airlock pools [--json] FILE...
//	airlock pools --watch URL [--every D] [--json]
//	airlock run FILE --steps N [--param K=V]... [--every K] [--hash] [--cross-check] [--states active|all|none] [--json]
//		[--backend batch|interpreter] [--workers N] [--plot FILE.svg [--slots p#0.x,p]]
//	airlock check [--param K=V]... [--json] FILE...
//	airlock fmt [-w] [-d] [--check] FILE...
//	airlock disasm [--param K=V]... FILE
//	airlock stress --scenario NAME [--for D] [--producers N] [--seed S] [--faults] [--json] [--write FILE.md] [--log] [--flight DIR]
//	airlock stress --list [--json]
//	airlock version [--json]
//	airlock completion bash|zsh|fish
//
// Exit status: 0 when everything went well, 1 when the program failed, 2 for a command line
// that cannot be run. Each failure is one sentence on standard error,
// but for a replay that comes out otherwise: that is its result, on standard output, with status 1; and
// for a bad pool file or world file, of which the place is told first, as file:line:column, and the line is shown.
//
// A violation that airlock stress finds is its result, on standard output, with status 1 and the command that repeats
// it. One that is interrupted reports what it did until then, which is no failure.
//
// With --json what is wrong with files is on standard output too. A reader of the output who goes away, as in airlock … | head, ends
// the command as an interrupt does; that is no failure.
//
// A run that is interrupted ends after the step it is in, prints the state that it has come to, and has status 1.
package main
