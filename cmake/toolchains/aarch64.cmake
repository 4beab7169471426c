# SPDX-License-Identifier: Apache-2.0
# Programs for aarch64, built on another processor with Debian's cross compiler and the libraries that
# deploy/fetch_arm64.sh unpacks into build/arm64.
get_filename_component(_source "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_SYSROOT "${_source}/build/arm64")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# The C library of those packages comes before that of the cross compiler, which has no security updates.
foreach(_language IN ITEMS C CXX)
  set(CMAKE_${_language}_FLAGS_INIT "-B${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu")
endforeach()
# The build runs `rollcall` for its man pages.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)

# Code generators are this machine's own; headers are also in build/headers and build/sources.
set(CMAKE_FIND_ROOT_PATH "${CMAKE_SYSROOT}" "${_source}/build")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
    "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
