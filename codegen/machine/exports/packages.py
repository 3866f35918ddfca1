"""Relocatable pkg-config and CMake files for an exported library."""

from __future__ import annotations


def package_files(name: str, library: str, description: str) -> dict[str, tuple[str, bytes]]:
    """Return the names and contents of both files, by kind.

    >>> files = package_files("energy", "libenergy.so", "energy, compiled")
    >>> [filename for filename, _ in files.values()]
    ['energy.pc', 'energy-config.cmake']
    """
    return {
        "pkg-config": (f"{name}.pc", _pkg_config(name, description).encode()),
        "cmake": (f"{name}-config.cmake", _cmake(name, library).encode()),
    }


def _pkg_config(name: str, description: str) -> str:
    return f"""prefix=${{pcfiledir}}

Name: {name}
Description: {description}
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
