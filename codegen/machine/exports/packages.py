"""Relocatable pkg-config and CMake files for an exported library."""

from __future__ import annotations


def package_files(name: str, library: str, what: str) -> dict[str, tuple[str, bytes]]:
    """Return the names and contents of both files, by kind.

    >>> files = package_files("energy", "libenergy.so", "energy, compiled")
    >>> [filename for filename, _ in files.values()]
    ['energy.pc', 'energy-config.cmake']
    """
    return {
        "pkg-config": (f"{name}.pc", _pkg_config(name, what).encode()),
        "cmake": (f"{name}-config.cmake", _cmake(name, library).encode()),
    }


def _pkg_config(name: str, what: str) -> str:
    return f"""prefix=${{pcfiledir}}

Name: {name}
Description: {what}
Version: 0
Cflags: -I${{prefix}}
Libs: -L${{prefix}} -l{name} -Wl,-rpath,${{prefix}}
Libs.private: -lm
"""


def _cmake(name: str, library: str) -> str:
    return f"""if(NOT TARGET {name}::{name})
  add_library({name}::{name} SHARED IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{library}"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
"""
