package declare

import (
	"fmt"
	"strconv"
	"strings"
)

// Disassemble lists a program as the reference machine runs it: the code of each system, by its address.
//
// Concurrency: any goroutine. Allocates: yes.
func Disassemble(p *Program) string {
	var b strings.Builder
	for i := range p.Systems {
		s := &p.Systems[i]
		c := compile(p, s)
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "system %d: %v on %s, line %d, %d registers", i, s.Kind, p.Groups[s.On].Name, s.Pos.Line, c.registers)
		if s.Kind == Spawn {
			fmt.Fprintf(&b, ", into %s, every %d steps from %d on", p.Groups[s.Pool].Name, s.Every, s.Phase)
		}
		b.WriteByte('\n')
		disassemble(&b, p, s, c.bytes)
	}
	return b.String()
}

// disassemble writes an instruction to a line.
func disassemble(b *strings.Builder, p *Program, s *System, bytes []byte) {
	in := operands{bytes: bytes}
	for in.at < len(bytes) {
		at := in.at
		op := Opcode(in.u8())
		name, list := op.String(), []string(nil)
		var other uint32
		for _, kind := range instructions[op].operands {
			switch kind {
			case opRegister:
				list = append(list, "r"+strconv.Itoa(in.u16()))
			case opNumber:
				list = append(list, strconv.FormatFloat(in.number(), 'g', -1, 64))
			case opSlot:
				group := &p.Groups[s.On]
				if other != 0 {
					i, _, _ := p.GroupOf(other)
					group = &p.Groups[i]
				}
				list = append(list, group.Slots[in.u16()].Name)
			case opID:
				other = in.u32()
				list = append(list, "@"+p.Name(other))
			case opWideID:
				list = append(list, "@"+p.Name(in.wideID()))
			case opCount:
				list = append(list, strconv.FormatUint(uint64(in.u32()), 10))
			case opOperation:
				name = Op(in.u8()).String()
			case opAddress:
				list = append(list, fmt.Sprintf("%04d", in.u32()))
			}
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %04d  %3d  %-10s %s", at, op, name, strings.Join(list, ", ")), " "))
		b.WriteByte('\n')
	}
}
