# What Rollcall builds on. Found by pkg-config where a distribution's CMake
# files differ between releases (Ubuntu 22.04 ships none for gRPC).

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
set_package_properties(Protobuf PROPERTIES PURPOSE "the wire between agent and daemon, and incident.json")
pkg_check_modules(GRPCPP REQUIRED IMPORTED_TARGET grpc++)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_package(absl REQUIRED)
set_package_properties(absl PROPERTIES PURPOSE "status values, strings, time, hash maps")
find_package(spdlog REQUIRED)
set_package_properties(spdlog PROPERTIES PURPOSE "logging (Debian's Abseil has no absl/log)")
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
set_package_properties(CLI11 PROPERTIES PURPOSE "flags, subcommands, flags from the environment")
pkg_check_modules(LIBUNWIND REQUIRED IMPORTED_TARGET libunwind libunwind-generic)
pkg_check_modules(LIBDW REQUIRED IMPORTED_TARGET libdw libelf)
# Debian compiles it into a library; elsewhere the header is all there is.
find_path(HTTPLIB_INCLUDE_DIR httplib.h REQUIRED)
find_library(HTTPLIB_LIBRARY cpp-httplib)
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()

find_package(NcclHeaders REQUIRED)
set_package_properties(NcclHeaders PROPERTIES PURPOSE "types and signatures of the calls that are wrapped")
