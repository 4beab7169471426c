# Tests of the library, of the segment's reader, of the agent and the daemon.
include(GoogleTest)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_test(NAME library_file
  COMMAND ${CMAKE_COMMAND} -E env "ROLLCALL_LIBRARY=$<TARGET_FILE:rollcall_library>"
          ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
          "${CMAKE_CURRENT_LIST_DIR}/library_file_test.py")
add_test(NAME nccl_surface
  COMMAND ${CMAKE_COMMAND} -E env "NCCL_INCLUDE_DIR=${NCCL_INCLUDE_DIR}"
          ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
          "${CMAKE_CURRENT_LIST_DIR}/nccl_surface_test.py")

add_test(NAME library_company
  COMMAND ${CMAKE_COMMAND} -E env "ROLLCALL_LIBRARY=$<TARGET_FILE:rollcall_library>"
          "ROLLCALL_STUB_DIR=${CMAKE_BINARY_DIR}/stubs" "LIBRARY_STEPS=$<TARGET_FILE:library_steps>"
          "NCCL_INCLUDE_DIR=${NCCL_INCLUDE_DIR}" "CUDA_INCLUDE_DIR=${CUDA_INCLUDE_DIR}"
          ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
          "${CMAKE_CURRENT_LIST_DIR}/library_company_test.py")

add_test(NAME library_loader
  COMMAND ${CMAKE_COMMAND} -E env "ROLLCALL_LIBRARY=$<TARGET_FILE:rollcall_library>"
          "ROLLCALL_STUB_DIR=${CMAKE_BINARY_DIR}/stubs" "ROLLCALL_SIM_DIR=${CMAKE_BINARY_DIR}/sim"
          "RANKS=$<TARGET_FILE:ranks>"
          "STATIC_NCCL_PROGRAM=${CMAKE_BINARY_DIR}/tests/healthy_mix_static"
          ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
          "${CMAKE_CURRENT_LIST_DIR}/library_loader_test.py")
set_tests_properties(library_loader PROPERTIES TIMEOUT 300)

add_test(NAME library_memory
  COMMAND ${CMAKE_COMMAND} -E env "ROLLCALL_LIBRARY=$<TARGET_FILE:rollcall_library>"
          "ROLLCALL_STUB_DIR=${CMAKE_BINARY_DIR}/stubs" "LIBRARY_STEPS=$<TARGET_FILE:library_steps>"
          ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
          "${CMAKE_CURRENT_LIST_DIR}/library_memory_test.py")
set_tests_properties(library_memory PROPERTIES TIMEOUT 300)

add_test(NAME library_hostile
  COMMAND ${CMAKE_COMMAND} -E env "ROLLCALL_LIBRARY=$<TARGET_FILE:rollcall_library>"
          "ROLLCALL_STUB_DIR=${CMAKE_BINARY_DIR}/stubs" "NCCL_INCLUDE_DIR=${NCCL_INCLUDE_DIR}"
          "CUDA_INCLUDE_DIR=${CUDA_INCLUDE_DIR}"
          ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
          "${CMAKE_CURRENT_LIST_DIR}/library_hostile_test.py")
set_tests_properties(library_hostile PROPERTIES TIMEOUT 300)

if(NOT ROLLCALL_SANITIZE)
  add_test(NAME library_instructions
    COMMAND ${CMAKE_COMMAND} -E env "ROLLCALL_LIBRARY=$<TARGET_FILE:rollcall_library>"
            "ROLLCALL_STUB_DIR=${CMAKE_BINARY_DIR}/stubs" "LIBRARY_STEPS=$<TARGET_FILE:library_steps>"
            ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
            "${CMAKE_CURRENT_LIST_DIR}/library_instructions_test.py")
endif()

# The library and the programs that test it, cross-built, and these tests on them under emulation.
add_test(NAME library_aarch64
  COMMAND "${CMAKE_CURRENT_LIST_DIR}/library_aarch64.sh" "${CMAKE_BINARY_DIR}"
          "${NCCL_INCLUDE_DIR}" "${CUDA_INCLUDE_DIR}")
set_tests_properties(library_aarch64 PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)

include("${CMAKE_CURRENT_LIST_DIR}/library_programs.cmake")
add_executable(library_victim "${CMAKE_CURRENT_LIST_DIR}/library_victim.cc")
target_link_libraries(library_victim PRIVATE test_job Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(library_victim PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")

add_executable(library_room_test "${CMAKE_CURRENT_LIST_DIR}/library_room_test.cc")
target_include_directories(library_room_test PRIVATE "${ROLLCALL_ROOT}")
target_link_libraries(library_room_test PRIVATE rollcall_sanitize GTest::gtest_main)
gtest_discover_tests(library_room_test)

set(_core_tests call_sites library library_calls library_ends library_graphs library_late library_process library_signal_stacks library_stack_room torch_shapes segment_reader tick_clock comm_update job_store
                segment_owner wait_floor spare_threads agent_info host_scan
                collector agent_service daemon daemon_clock timeline http history alerts metrics views
                clean_text history_keeper http_front incident_list report_queue)
foreach(_test IN LISTS _core_tests)
  add_executable(${_test}_test "${CMAKE_CURRENT_LIST_DIR}/${_test}_test.cc")
  target_include_directories(${_test}_test PRIVATE "${CMAKE_CURRENT_LIST_DIR}" "${ROLLCALL_ROOT}")
  target_link_libraries(${_test}_test PRIVATE rollcall_agent rollcall_server rollcall_sanitize
                                              GTest::gtest_main PkgConfig::HTTPLIB)
  target_compile_definitions(${_test}_test PRIVATE
    ROLLCALL_BINARY_DIR="${CMAKE_BINARY_DIR}"
    ROLLCALL_LIBRARY="$<TARGET_FILE:rollcall_library>"
    ROLLCALL_SIM_DIR="${ROLLCALL_SIM_DIR}"
    ROLLCALL_STUB_DIR="${_stubs}"
    LIBRARY_VICTIM="$<TARGET_FILE:library_victim>"
    LIBRARY_STEPS="$<TARGET_FILE:library_steps>"
    LIBRARY_QUIET="$<TARGET_FILE:library_quiet>"
    LIBRARY_LOADERS="$<TARGET_FILE:library_loaders>"
    OTHER_INTERPOSER="$<TARGET_FILE:other_interposer>"
    FORK_WITHIN="$<TARGET_FILE:fork_within>")
  add_dependencies(${_test}_test rollcall_library library_victim library_steps library_loaders library_quiet
                                 library_steps_plugin other_interposer fork_within stub_old_nccl)
  if(ROLLCALL_SANITIZE STREQUAL "thread" AND _test MATCHES "^(agent_service|daemon|daemon_clock|http)$")
    continue()  # tests/CMakeLists.txt says why
  endif()
  gtest_discover_tests(${_test}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
endforeach()

if(NOT ROLLCALL_SANITIZE STREQUAL "thread")
  add_test(NAME cli
    COMMAND ${CMAKE_COMMAND} -E env "CLI_TEST_ROLLCALL=$<TARGET_FILE:rollcall>"
            "CLI_TEST_LIBRARY=$<TARGET_FILE:rollcall_library>"
            "CLI_TEST_STEPS=$<TARGET_FILE:library_steps>" "CLI_TEST_STUBS=${_stubs}"
            ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
            "${CMAKE_CURRENT_LIST_DIR}/cli_test.py")
  set_tests_properties(cli PROPERTIES TIMEOUT 300)
endif()

# The command line has no library of its own: what is pure in it is compiled in.
add_executable(hang_policy_test "${CMAKE_CURRENT_LIST_DIR}/hang_policy_test.cc"
                                "${ROLLCALL_ROOT}/cli/hang_policy.cc")
target_include_directories(hang_policy_test PRIVATE "${ROLLCALL_ROOT}")
target_link_libraries(hang_policy_test PRIVATE rollcall_sanitize GTest::gtest_main)
gtest_discover_tests(hang_policy_test DISCOVERY_TIMEOUT 60)
