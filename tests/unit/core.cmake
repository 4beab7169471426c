# Tests of the library, of the segment's reader, of the agent and the daemon.
include(GoogleTest)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_test(NAME library_file
  COMMAND ${CMAKE_COMMAND} -E env "ROLLCALL_LIBRARY=$<TARGET_FILE:rollcall_library>"
          ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
          "${CMAKE_CURRENT_LIST_DIR}/library_file_test.py")

# The victim is a program that people might run: never built with a sanitizer.
add_executable(library_victim "${CMAKE_CURRENT_LIST_DIR}/library_victim.cc")
target_link_libraries(library_victim PRIVATE test_job Threads::Threads ${CMAKE_DL_LIBS})

foreach(_test library segment_reader comm_update job_store daemon)
  add_executable(${_test}_test "${CMAKE_CURRENT_LIST_DIR}/${_test}_test.cc")
  target_include_directories(${_test}_test PRIVATE "${CMAKE_CURRENT_LIST_DIR}" "${ROLLCALL_ROOT}")
  target_link_libraries(${_test}_test PRIVATE rollcall_agent rollcall_daemon rollcall_sanitize
                                              GTest::gtest_main
                                              $<$<BOOL:${HTTPLIB_LIBRARY}>:${HTTPLIB_LIBRARY}>)
  target_compile_definitions(${_test}_test PRIVATE
    ROLLCALL_LIBRARY="$<TARGET_FILE:rollcall_library>"
    ROLLCALL_SIM_DIR="${ROLLCALL_SIM_DIR}"
    LIBRARY_VICTIM="$<TARGET_FILE:library_victim>")
  add_dependencies(${_test}_test rollcall_library library_victim)
  gtest_discover_tests(${_test}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
endforeach()
