// Package declare runs worlds that are written as data. A world file declares entities, pools and the
// systems that spawn, move and despawn them:
//
//	world {
//	  title = "Pooled particles"
//	  params { k = 12.0 }
//	  entity emitter { state = (x = -6.0, vx = 1.5) }
//	  pool p[24] { state = (x = 0.0, vx = 0.0) }
//	}
//	systems {
//	  spawn   { on = emitter; pool = p }              # count = 1, every = 1, phase = 0 by default
//	  update  { on = p; dt = 0.1 x = x + inte(0.0 + vx) }
//	  despawn { on = p; when = x > 6.0 }
//	}
//
// Load reads, checks and binds a file; the Program it gives is what runs. Format lays a file out. Attach puts a program into an
// engine, beside the systems that are written in Go; a Runner has an engine for it alone. The package owns the language
// and what runs it, and leaves storage, frames, rollback, hashes and saved states to the registry and the engine.
//
// # Form
//
// Space and the ends of lines only part words; statements may be parted by a semicolon and need
// not be, for no expression goes on where a name, or state.name, stands next to a complete one: dt = 0.1 x = x is
// two statements. An operator always goes on: in dt = 0.1 -x = 2 the dt would be 0.1-x, which the = after it
// makes an error. A comment goes from # or // to the end of the line. But # right behind a name and right
// before a digit is a slot of a pool, as in p#0.
//
// Names are letters, digits and _, and do not start with a digit. The words of expressions and rules (t, dt, pi,
// true, false, and, or, not, active, state, let, on, when, the functions) and s0, s1, … are nobody's names.
// Entities and pools share one space of names, parameters, state slots and lets another, in which the slots of each declaration and the lets of each system are apart. Declarations may
// follow their uses, but a let is used only by what follows it.
//
// Operators, weakest first: or; and; not; == != < <= > >=, which do not chain; + -; * / %; unary -.
// Constants, which are initial values, parameters, N of a pool, dt, count, every and phase, are
// expressions of numbers and parameters. Parameters may use each other, in no circle.
//
// Presentation attributes stand in the world, in entities and in pools: position, size and
// gravity are up to three numbers, color three or four or a text, shape and label a text,
// hidden a condition, alone true. Numbers may be expressions of the state slots of their own entity. No system
// reads or writes an attribute. Where a text is asked for, a bare word is one.
//
// # Identities
//
// Entities have the ids 1, 2, … in the order of their declarations; after them come the slots of the
// pools, in order. An entity starts active, a slot of a pool inactive; both start with their initial state.
// After Load the list never changes.
//
// # Steps
//
// The first step is step 0. In a step each system runs once, in the order of the source, and sees all
// that those before it did.
//
// An update runs on the active entities of its group. All its lets and rules read the state, and who is
// active, as they were when the system started, of any entity; what they assign is there when it ends. Its
// order over entities and rules cannot be seen. active = c makes the entity inactive where c is not true, which
// for a slot of a pool is what a despawn does.
//
// A despawn makes every active entity of its group inactive for which its condition is true, in
// ascending order. All conditions read the state and who is active as they were when the system started. A slot
// of a pool that has become inactive has its initial state again, whatever is assigned to it in the same update; an
// ordinary entity keeps its state, and is never active again. The state of what is inactive stays readable, and is part of the
// state of the world.
//
// A spawn runs in steps phase, phase+every, phase+2*every, … Its callers are the entities of its group, active
// or not, in ascending order, one after the other: each sees what those before it did. A caller activates the
// lowest inactive slot of the pool, up to count times, as long as there is one. Each slot gets a copy of the
// caller's state, slot by slot in order, if both have the same number of slots; otherwise it keeps
// the state that it has, which is the initial one. A caller may belong to the pool itself.
//
// # Numbers
//
// All values are float64. A condition is true unless it is 0 or -0: NaN is true. Comparisons, and, or, not and active(x)
// give 1 or 0. Nothing is an effect, so it cannot be seen whether both sides of and, or and if are computed.
//
//   - + - * / sqrt are those of IEEE 754, each rounded on its own, none fused. inte(e) is dt*e.
//   - x / 0 and x % 0 are 0, for every x, also for -0.
//   - x % y is x - floor(x/y)*y, rounded after each operation: it goes with the sign of y.
//   - -x flips the sign: -0 is a value, equal to 0.
//   - min and max are NaN if one side is; -0 is less than 0 for them. clamp(x, a, b) is min(max(x, a), b), so that
//     b wins where a is above it.
//   - sign(x) is 1 above 0, -1 below, and 0 for 0, -0 and NaN. sqrt of less than 0 is NaN.
//   - NaN compares as IEEE 754 says: everything is false but !=.
//   - if(c, a, b) is a where c is true, otherwise b.
//   - t is the number of the step times the dt of the first update of the file, DefaultDt if there is
//     none: the same in all systems of a step.
//
// Infinities and NaN may arise within an expression. State is always finite: an assignment of a value that is
// not finite is not stored, and the slot keeps the value it had when the system started; the other assignments of
// that entity are not affected. A constant that is not finite is an error of Load.
//
// # Storage
//
// A world is ordinary storage of its registry. Each group is a class, called after the world and the group, such as world.p,
// with a block of slots: a pool its slots, an ordinary entity one. The state is a component for each number of slots,
// declare.State2 and so on, Temporal and split, so that each slot of the state is a column of float64; active is
// the Active plane. One more class, world#clock, has one entity whose component is how many steps have run. All that a step
// depends on is there: it is hashed and saved, goes back with a rollback, and is what a journal begins with. Prepare is for a
// registry into which it is loaded or replayed.
//
// One system runs the step, in the phase that Options say. Go systems may read and write the columns in other systems of the
// frame, see registry.Block.Chunks, and may end entities: the slot of a pool is free again from the next frame on, an ordinary entity
// stays inactive. Whom they make inactive without ending it, or give further components, the systems of the world
// leave alone until that is taken back, and its slot is not free.
//
// A hash is equal to that of another run if their registries are configured alike: with a temporal ring, what is there from the
// start has other handles than without.
//
// # Backends
//
// Batch, the default, has a system as a list of loops, each of one operation over a block of 256 slots, whole words of the Active
// plane at a time; expressions that are the same for all slots are computed once. Slots that are not active may be computed, and are
// masked where the block is stored. Commonest of all, x + dt*v and x + dt*(a + v) are one loop instead of two or three. Systems over many
// slots are spread over the workers of the engine, by chunks, which do not look at each other.
//
// Interpreter is the reference: a machine with registers, which runs the code of a system for one entity after the other, on an image
// of the world that it takes from the columns before a step and puts back after it. Its instructions are those of Opcode, and
// Disassemble lists them. All that it changes goes through Select: it stores either a new value or the old one. It is some forty times slower.
//
// Both compute the same bits, with any number of workers, on any machine. A Runner with CrossCheck runs both and compares the
// hash of the state after every step.
//
// # Errors
//
// Load reports up to MaxErrors errors of a file at once, each with its line and a caret. The limits are
// constants of the package: MaxSource, MaxNesting and so on.
package declare
