from codegen.encoding.disassembly import mapped_listing as mapped_listing
from codegen.ir.strictness import fall_back as fall_back
from codegen.machine.batches.batch import Batch as Batch, signature as signature
from codegen.machine.batches.gufunc import Gufunc as Gufunc, require_arrays as require_arrays
from codegen.machine.calls.kernel_page import heading as heading, kernel_page as kernel_page
from codegen.machine.exports.c_interface import call as call, entry as entry
from codegen.machine.exports.export import Material as Material, export as export
from codegen.machine.gpu.gpu_kernel import GpuKernel as GpuKernel
from codegen.machine.kernel_text import LISTING as LISTING, write as write
from codegen.machine.storage.kernel_files import containers_of as containers_of, write_kernel as write_kernel
from codegen.machine.storage.native_writing import with_code as with_code
from codegen.machine.storage.portable import encode as encode
