# SPDX-License-Identifier: Apache-2.0
# The libraries of the preset `portable`, all of them static: a program then runs on any Linux of its
# processor, whatever C library is there. Debian's -dev packages have the archives; deploy/fetch_sources.sh
# fetches the libraries of which Debian ships none. Defines the same targets as
# RollcallDependencies.cmake.
#
# docs/decisions has the reasons, and what a static program cannot do: load libraries, and so ask the
# system's name services other than files and DNS.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_program(Protobuf_PROTOC_EXECUTABLE protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_package(NcclHeaders REQUIRED)

set(_sources "${CMAKE_SOURCE_DIR}/build/sources")
if(NOT EXISTS "${_sources}/fetched")
  message(FATAL_ERROR "The preset portable needs sources that Debian does not ship as archives:  deploy/fetch_sources.sh")
endif()

# The archives, by the names that pkg-config gives.
pkg_check_modules(PORTABLE REQUIRED
  grpc++ protobuf absl_status absl_statusor absl_strings absl_str_format absl_synchronization absl_time
  absl_btree absl_cleanup absl_flags absl_flags_parse absl_flat_hash_map
  libunwind libunwind-generic libdw libelf openssl re2 yaml-cpp ncursesw sqlite3 jemalloc zlib)
set(_names gcc_eh)  # before libunwind, which defines some of its symbols, too
# Not in the files of pkg-config: what gRPC's archives need, and crypt().
list(APPEND _names ${PORTABLE_STATIC_LIBRARIES} grpc gpr upb address_sorting cares crypt)
list(REMOVE_ITEM _names pthread dl rt m c systemd)
list(REMOVE_DUPLICATES _names)
set(_archives "")
separate_arguments(_compiler UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
list(PREPEND _compiler "${CMAKE_CXX_COMPILER}")
if(CMAKE_SYSROOT)
  list(APPEND _compiler "--sysroot=${CMAKE_SYSROOT}")
endif()
foreach(_name IN LISTS _names)
  execute_process(COMMAND ${_compiler} "-print-file-name=lib${_name}.a"
                  OUTPUT_VARIABLE _path OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT IS_ABSOLUTE "${_path}")
    message(FATAL_ERROR "The preset portable found no lib${_name}.a:  deploy/setup.sh")
  endif()
  string(APPEND _archives "\n  \"${_path}\"")
endforeach()

# libpq with its own parts alone, from the sources: cmake/build_libpq.sh says why.
set(_libpq "${CMAKE_BINARY_DIR}/libpq")
set(_libpq_source "${_sources}/postgresql")
set(_libpq_archives "${_libpq}/libpq.a" "${_libpq}/libpgcommon_shlib.a" "${_libpq}/libpgport_shlib.a")
separate_arguments(_c_flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
set(_c_compiler "${CMAKE_C_COMPILER}" ${_c_flags})
if(CMAKE_SYSROOT)
  list(APPEND _c_compiler "--sysroot=${CMAKE_SYSROOT}")
endif()
add_custom_command(
  OUTPUT ${_libpq_archives}
  COMMAND "${CMAKE_SOURCE_DIR}/cmake/build_libpq.sh" "${_libpq_source}" "${_libpq}"
          "${CMAKE_SYSTEM_PROCESSOR}-linux-gnu" ${_c_compiler}
  DEPENDS "${CMAKE_SOURCE_DIR}/cmake/build_libpq.sh" "${_sources}/fetched"
  COMMENT "libpq.a"
  VERBATIM)
add_custom_target(portable_libpq DEPENDS ${_libpq_archives})
foreach(_archive IN LISTS _libpq_archives)
  string(APPEND _archives "\n  \"${_archive}\"")
endforeach()

# One script for the linker instead of an order: each archive may need each other one.
set(_group "${CMAKE_BINARY_DIR}/libportable.a")
file(CONFIGURE OUTPUT "${_group}" CONTENT "/* GNU ld script */\nGROUP (@_archives@\n)\n" @ONLY)
add_library(portable_archives INTERFACE IMPORTED)
target_link_libraries(portable_archives INTERFACE "${_group}" Threads::Threads)
foreach(_target
    PkgConfig::GRPCPP PkgConfig::LIBUNWIND PkgConfig::LIBDW PkgConfig::OPENSSL PkgConfig::RE2 PkgConfig::YAML
    PkgConfig::NCURSES PkgConfig::SQLITE PkgConfig::JEMALLOC protobuf::libprotobuf ZLIB::ZLIB
    absl::btree absl::cleanup absl::flags absl::flags_parse absl::flat_hash_map absl::status absl::statusor
    absl::str_format absl::strings absl::synchronization absl::time)
  add_library(${_target} INTERFACE IMPORTED)
  target_link_libraries(${_target} INTERFACE portable_archives)
endforeach()
add_library(PkgConfig::LIBPQ INTERFACE IMPORTED)
file(MAKE_DIRECTORY "${_libpq}/include")  # CMake wants it before it is filled
target_include_directories(PkgConfig::LIBPQ SYSTEM INTERFACE "${_libpq}/include")
target_link_libraries(PkgConfig::LIBPQ INTERFACE portable_archives)
# Every program has the archives in its link.
add_dependencies(portable_archives portable_libpq)
# With the same options as in RollcallDependencies.cmake, a compiler cache knows the objects.
pkg_check_modules(GRPCPP REQUIRED grpc++)
target_compile_options(PkgConfig::GRPCPP INTERFACE ${GRPCPP_CFLAGS_OTHER})
add_executable(protobuf::protoc IMPORTED)
set_target_properties(protobuf::protoc PROPERTIES IMPORTED_LOCATION "${Protobuf_PROTOC_EXECUTABLE}")

# Debian has no archive of spdlog and fmt: their headers are the whole.
add_library(spdlog::spdlog INTERFACE IMPORTED)
target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

# The whole header: without a library of its own.
add_library(PkgConfig::HTTPLIB INTERFACE IMPORTED)
target_include_directories(PkgConfig::HTTPLIB SYSTEM INTERFACE "${_sources}/cpp-httplib")
target_compile_definitions(PkgConfig::HTTPLIB INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT)
target_link_libraries(PkgConfig::HTTPLIB INTERFACE portable_archives)

set(_core "${_sources}/prometheus-cpp/core")
file(WRITE "${CMAKE_BINARY_DIR}/prometheus/prometheus/detail/core_export.h"
     "#pragma once\n#define PROMETHEUS_CPP_CORE_EXPORT\n")
add_library(portable_prometheus STATIC
  "${_core}/src/check_names.cc" "${_core}/src/serializer.cc" "${_core}/src/text_serializer.cc")
target_include_directories(portable_prometheus SYSTEM PUBLIC "${_core}/include" "${CMAKE_BINARY_DIR}/prometheus")
add_library(PkgConfig::PROMETHEUS INTERFACE IMPORTED)
target_link_libraries(PkgConfig::PROMETHEUS INTERFACE portable_prometheus)
