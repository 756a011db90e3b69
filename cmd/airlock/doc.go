// Command airlock runs the programs that show the engine at work.
//
//	airlock arena [--port N] [--bots N] [--rate HZ] [--for D] [--seed N] [--journal DIR]
//	airlock replay [--hashes] DIR
//	airlock pools FILE...
//	airlock version
//
// Exit status: 0 when everything went well, 1 when the program failed, 2 for a command line
// that cannot be run. Each failure is one sentence on standard error,
// but for a replay that comes out otherwise: that is its result, on standard output, with status 1; and
// for a bad pool file, of which the place is told first, as file:line:column, and the line is shown.
package main
