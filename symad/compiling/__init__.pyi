from symad.compiling.kernel_containers import restored as restored
