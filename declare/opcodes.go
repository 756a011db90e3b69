package declare

// Opcode is an instruction of the reference machine. The numbers do not change.
type Opcode uint8

// The instructions. Each is its opcode, a byte, and its operands, which follow it without gaps, all little-endian: registers,
// slots and operations in two, two and one bytes, ids, counts and addresses in four, numbers in eight. A register holds a
// float64.
const (
	End Opcode = 0 // the code of one entity is done

	// What can be read, as it was when the system started, but for LoadNew.
	LoadConst   Opcode = 1 // register, number
	LoadTime    Opcode = 2 // register: t
	LoadOwn     Opcode = 3 // register, slot: of the entity that the code runs for
	LoadRunning Opcode = 4 // register: 1 if that entity is active
	LoadOther   Opcode = 5 // register, id, slot: of one certain entity
	LoadActive  Opcode = 6 // register, id: 1 if that one is active
	LoadNew     Opcode = 7 // register, slot: of the entity that the code runs for, as it is now

	// What can be computed.
	Apply1   Opcode = 16 // register, operation, register: an operation on one value, such as Abs
	Apply2   Opcode = 17 // register, operation, register, register: on two, such as Add
	IsFinite Opcode = 18 // register, register: 1 if the value can be stored
	Select   Opcode = 19 // register, mask, register, register: the first if the mask is true, otherwise the second

	// What can be changed, of the entity that the code runs for. There is no condition: the code selects
	// between a new value and the old one, and stores that.
	StoreOwn    Opcode = 32 // slot, register
	StoreActive Opcode = 33 // register
	Refuse      Opcode = 34 // register: counts a value that is not stored, if it is true

	JumpIf Opcode = 48 // register, address: goes on there if it is true

	// Pools. An id is four limbs of four bytes, the lowest first; those of a world have one that is not 0.
	FindFreeSlot Opcode = 227 // register, id of the first slot, count of slots: the id of the first that is inactive, or 0
	SpawnInto    Opcode = 228 // register with an id, count: makes that entity active, with so many state slots of the caller; 0 is nobody
)

// operand is what an instruction has behind its opcode.
type operand uint8

const (
	opRegister operand = iota // where a result goes, or where a value comes from
	opNumber
	opSlot
	opID
	opWideID
	opCount
	opOperation
	opAddress
)

// bytes is how long an operand is.
func (o operand) bytes() int { return [...]int{2, 8, 2, 4, 16, 4, 1, 4}[o] }

// instruction is the form of an opcode.
type instruction struct {
	name     string
	operands []operand
}

// instructions are the forms of all opcodes.
var instructions = map[Opcode]instruction{
	End:          {"end", nil},
	LoadConst:    {"const", []operand{opRegister, opNumber}},
	LoadTime:     {"time", []operand{opRegister}},
	LoadOwn:      {"own", []operand{opRegister, opSlot}},
	LoadRunning:  {"running", []operand{opRegister}},
	LoadOther:    {"other", []operand{opRegister, opID, opSlot}},
	LoadActive:   {"active", []operand{opRegister, opID}},
	LoadNew:      {"new", []operand{opRegister, opSlot}},
	Apply1:       {"apply", []operand{opRegister, opOperation, opRegister}},
	Apply2:       {"apply", []operand{opRegister, opOperation, opRegister, opRegister}},
	IsFinite:     {"finite", []operand{opRegister, opRegister}},
	Select:       {"select", []operand{opRegister, opRegister, opRegister, opRegister}},
	StoreOwn:     {"store", []operand{opSlot, opRegister}},
	StoreActive:  {"setactive", []operand{opRegister}},
	Refuse:       {"refuse", []operand{opRegister}},
	JumpIf:       {"jumpif", []operand{opRegister, opAddress}},
	FindFreeSlot: {"findfree", []operand{opRegister, opWideID, opCount}},
	SpawnInto:    {"spawninto", []operand{opRegister, opCount}},
}

// String is the name of the instruction.
//
// Concurrency: any goroutine. Allocates: no.
func (o Opcode) String() string {
	if in, ok := instructions[o]; ok {
		return in.name
	}
	return "opcode"
}
