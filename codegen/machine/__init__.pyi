from codegen.machine.build import kernel_of as kernel_of, revive as revive
from codegen.machine.storage.cache import chosen as chosen
from codegen.machine.storage.portable import decode as decode
from codegen.machine.storage.program_cache import ProgramCache as ProgramCache
