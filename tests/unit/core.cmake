# Tests of the library, of the segment's reader, of the agent and the daemon.
include(GoogleTest)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_test(NAME library_file
  COMMAND ${CMAKE_COMMAND} -E env "ROLLCALL_LIBRARY=$<TARGET_FILE:rollcall_library>"
          ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
          "${CMAKE_CURRENT_LIST_DIR}/library_file_test.py")

# What the library is preloaded into are programs that people might run: never
# built with a sanitizer.
set(_stubs "${CMAKE_BINARY_DIR}/stubs")
function(add_stub target name version folder)
  add_library(${target} SHARED ${ARGN})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} SOVERSION ${version} LIBRARY_OUTPUT_DIRECTORY "${folder}")
  target_link_libraries(${target} PRIVATE NcclHeaders::NcclHeaders)
endfunction()
add_stub(stub_cuda cuda 1 "${_stubs}" "${CMAKE_CURRENT_LIST_DIR}/stub_cuda.cc")
add_stub(stub_nccl nccl 2 "${_stubs}" "${CMAKE_CURRENT_LIST_DIR}/stub_nccl.cc")
add_stub(stub_old_nccl nccl 2 "${_stubs}/old" "${CMAKE_CURRENT_LIST_DIR}/stub_nccl.cc")
target_compile_definitions(stub_old_nccl PRIVATE STUB_OLD)

add_library(other_interposer MODULE "${CMAKE_CURRENT_LIST_DIR}/other_interposer.cc")
target_link_libraries(other_interposer PRIVATE NcclHeaders::NcclHeaders ${CMAKE_DL_LIBS})
add_library(library_steps_plugin MODULE "${CMAKE_CURRENT_LIST_DIR}/library_steps_plugin.cc")
target_link_libraries(library_steps_plugin PRIVATE stub_nccl NcclHeaders::NcclHeaders
                                                   ${CMAKE_DL_LIBS})
foreach(_target other_interposer library_steps_plugin)
  set_target_properties(${_target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${_stubs}")
endforeach()

add_executable(library_victim "${CMAKE_CURRENT_LIST_DIR}/library_victim.cc")
target_link_libraries(library_victim PRIVATE test_job Threads::Threads ${CMAKE_DL_LIBS})
add_executable(library_steps "${CMAKE_CURRENT_LIST_DIR}/library_steps.cc")
target_link_libraries(library_steps PRIVATE stub_nccl stub_cuda NcclHeaders::NcclHeaders
                                            Threads::Threads)
add_executable(library_loaders "${CMAKE_CURRENT_LIST_DIR}/library_loaders.cc")
target_link_libraries(library_loaders PRIVATE ${CMAKE_DL_LIBS})
target_compile_definitions(library_loaders PRIVATE
  LIBRARY_PLUGIN="$<TARGET_FILE:library_steps_plugin>")
foreach(_target library_loaders library_steps_plugin)
  target_compile_options(${_target} PRIVATE -O0)
endforeach()
foreach(_target library_victim library_steps library_loaders)
  set_target_properties(${_target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
endforeach()

set(_core_tests call_sites library library_calls library_process segment_reader comm_update job_store
                collector agent_service daemon http history alerts metrics views)
foreach(_test IN LISTS _core_tests)
  add_executable(${_test}_test "${CMAKE_CURRENT_LIST_DIR}/${_test}_test.cc")
  target_include_directories(${_test}_test PRIVATE "${CMAKE_CURRENT_LIST_DIR}" "${ROLLCALL_ROOT}")
  target_link_libraries(${_test}_test PRIVATE rollcall_agent rollcall_daemon rollcall_sanitize
                                              GTest::gtest_main PkgConfig::HTTPLIB)
  target_compile_definitions(${_test}_test PRIVATE
    ROLLCALL_LIBRARY="$<TARGET_FILE:rollcall_library>"
    ROLLCALL_SIM_DIR="${ROLLCALL_SIM_DIR}"
    ROLLCALL_STUB_DIR="${_stubs}"
    LIBRARY_VICTIM="$<TARGET_FILE:library_victim>"
    LIBRARY_STEPS="$<TARGET_FILE:library_steps>"
    LIBRARY_LOADERS="$<TARGET_FILE:library_loaders>"
    OTHER_INTERPOSER="$<TARGET_FILE:other_interposer>")
  add_dependencies(${_test}_test rollcall_library library_victim library_steps library_loaders
                                 library_steps_plugin other_interposer stub_old_nccl)
  if(ROLLCALL_SANITIZE STREQUAL "thread" AND _test MATCHES "^(agent_service|daemon|http)$")
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
