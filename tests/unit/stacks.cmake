# Tests of the libraries in agent/ up to stacks/, and the victims that they look at. Victims are programs
# that people might run, so they are never built with a sanitizer.
set(_victims "${CMAKE_CURRENT_LIST_DIR}/victims")
set(_victim_dir "${CMAKE_BINARY_DIR}/victims")

add_library(victim_library SHARED "${_victims}/victim_library.cc")
add_library(victim_no_unwind SHARED "${_victims}/victim_no_unwind.cc")
target_compile_options(victim_no_unwind PRIVATE -fno-asynchronous-unwind-tables -fno-unwind-tables
  -fno-exceptions -fno-omit-frame-pointer)
# The same, unwound by .debug_frame alone.
add_library(victim_debug_frame SHARED "${_victims}/victim_no_unwind.cc")
target_compile_definitions(victim_debug_frame PRIVATE VICTIM_CALL=victim_debug_frame_call)
target_compile_options(victim_debug_frame PRIVATE -fno-asynchronous-unwind-tables
  -fno-unwind-tables -fno-exceptions -fomit-frame-pointer)
add_executable(stack_victim "${_victims}/stack_victim.cc")
target_link_libraries(stack_victim PRIVATE victim_library victim_no_unwind victim_debug_frame
                                           Threads::Threads)
foreach(_target victim_library victim_no_unwind victim_debug_frame stack_victim)
  target_compile_options(${_target} PRIVATE -O2 -g -fno-optimize-sibling-calls)
  target_link_options(${_target} PRIVATE -Wl,--build-id=sha1)
  set_target_properties(${_target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${_victim_dir}" LIBRARY_OUTPUT_DIRECTORY "${_victim_dir}")
endforeach()
target_compile_options(victim_no_unwind PRIVATE -g0)
target_compile_options(stack_victim PRIVATE -fomit-frame-pointer)
add_custom_command(TARGET stack_victim POST_BUILD
  COMMAND "${CMAKE_OBJCOPY}" --strip-all "${_victim_dir}/stack_victim"
          "${_victim_dir}/stack_victim_stripped")
# As distributions ship programs: only a compressed table of symbols is left (.gnu_debugdata).
find_program(XZ_PROGRAM xz REQUIRED)
add_custom_command(TARGET stack_victim POST_BUILD
  COMMAND "${CMAKE_OBJCOPY}" --strip-debug "${_victim_dir}/stack_victim" "${_victim_dir}/symbols"
  COMMAND "${XZ_PROGRAM}" --force "${_victim_dir}/symbols"
  COMMAND "${CMAKE_OBJCOPY}" --add-section ".gnu_debugdata=${_victim_dir}/symbols.xz"
          "${_victim_dir}/stack_victim_stripped" "${_victim_dir}/stack_victim_minidebug")

include(GoogleTest)
foreach(_source process_discovery proc_evidence process_watch stack_parts stack_taker
                stack_unwinder symbolizer python/python_forms python/python_stacks)
  get_filename_component(_test ${_source} NAME)
  add_executable(${_test}_test
    "${CMAKE_CURRENT_LIST_DIR}/${_source}_test.cc" "${CMAKE_CURRENT_LIST_DIR}/victim_process.cc")
  target_include_directories(${_test}_test PRIVATE "${CMAKE_CURRENT_LIST_DIR}")
  target_compile_definitions(${_test}_test PRIVATE
    ROLLCALL_VICTIM_DIR="${_victim_dir}"
    ROLLCALL_PYTHON_VICTIM="${CMAKE_CURRENT_LIST_DIR}/python/python_victim.py"
    ROLLCALL_TESTDATA_DIR="${CMAKE_CURRENT_LIST_DIR}/testdata")
  target_link_libraries(${_test}_test PRIVATE rollcall_stacks rollcall_sanitize GTest::gmock
    GTest::gtest_main)
  add_dependencies(${_test}_test stack_victim)
  gtest_discover_tests(${_test}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
endforeach()
