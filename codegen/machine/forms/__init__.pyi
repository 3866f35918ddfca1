from codegen.encoding.disassembly import listing as listing
from codegen.ir.strictness import fall_back as fall_back
from codegen.machine.batches.batch import Batch as Batch, signature as signature
from codegen.machine.batches.gufunc import Gufunc as Gufunc
from codegen.machine.exports.c_interface import entry as entry
from codegen.machine.exports.export import Material as Material, export as export
from codegen.machine.gpu.gpu_kernel import GpuKernel as GpuKernel
from codegen.machine.kernel_text import LISTING as LISTING, write as write
from codegen.machine.storage.native_writing import containers_of as containers_of, with_code as with_code
from codegen.machine.storage.portable import encode as encode
