# Tests of cli/flight_recorder.cmake's library.
add_executable(flight_recorder_test "${CMAKE_CURRENT_LIST_DIR}/flight_recorder_test.cc")
target_include_directories(flight_recorder_test PRIVATE "${CMAKE_CURRENT_LIST_DIR}")
target_compile_definitions(flight_recorder_test PRIVATE
  ROLLCALL_TESTDATA="${CMAKE_CURRENT_LIST_DIR}/testdata")
target_link_libraries(flight_recorder_test PRIVATE rollcall_flight_recorder GTest::gtest_main)
gtest_discover_tests(flight_recorder_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
