from codegen.machine.calls.gate_routines import gate_text as gate_text
