// SPDX-License-Identifier: Apache-2.0
// Makes the linker bind the oldest version of a few libc functions that newer glibc releases moved
// or re-versioned. One build must load in any container: if a symbol version is missing, the
// dynamic linker refuses to start every program that inherits LD_PRELOAD.
// tests/unit/interpose/library_file_test.py checks the built file. Include this header first.
#pragma once

#if defined(__x86_64__)
#define ROLLCALL_OLDEST_GLIBC "GLIBC_2.2.5"
#define ROLLCALL_OLD_DLINFO "GLIBC_2.3.3"
#define ROLLCALL_OLD_DLMOPEN "GLIBC_2.3.4"
#elif defined(__aarch64__)
#define ROLLCALL_OLDEST_GLIBC "GLIBC_2.17"
#define ROLLCALL_OLD_DLINFO "GLIBC_2.17"
#define ROLLCALL_OLD_DLMOPEN "GLIBC_2.17"
#else
#error "Rollcall's library runs on x86-64 and aarch64"
#endif

__asm__(".symver dlopen,dlopen@" ROLLCALL_OLDEST_GLIBC);
__asm__(".symver dlvsym,dlvsym@" ROLLCALL_OLDEST_GLIBC);
__asm__(".symver dlclose,dlclose@" ROLLCALL_OLDEST_GLIBC);
__asm__(".symver dlerror,dlerror@" ROLLCALL_OLDEST_GLIBC);
__asm__(".symver dladdr,dladdr@" ROLLCALL_OLDEST_GLIBC);
__asm__(".symver dladdr1,dladdr1@" ROLLCALL_OLD_DLINFO);
__asm__(".symver dlinfo,dlinfo@" ROLLCALL_OLD_DLINFO);
__asm__(".symver dlmopen,dlmopen@" ROLLCALL_OLD_DLMOPEN);
__asm__(".symver pthread_getcpuclockid,pthread_getcpuclockid@" ROLLCALL_OLDEST_GLIBC);
