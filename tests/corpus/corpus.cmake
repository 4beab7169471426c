# SPDX-License-Identifier: Apache-2.0
# Generated jobs with and without faults, and the score of the diagnosis on them.
add_library(rollcall_corpus STATIC
  ${CMAKE_CURRENT_LIST_DIR}/agents.cc
  ${CMAKE_CURRENT_LIST_DIR}/cases.cc
  ${CMAKE_CURRENT_LIST_DIR}/faults.cc
  ${CMAKE_CURRENT_LIST_DIR}/job_plan.cc
  ${CMAKE_CURRENT_LIST_DIR}/owed.cc
  ${CMAKE_CURRENT_LIST_DIR}/past_faults.cc
  ${CMAKE_CURRENT_LIST_DIR}/past_jobs.cc
  ${CMAKE_CURRENT_LIST_DIR}/pipeline_faults.cc
  ${CMAKE_CURRENT_LIST_DIR}/thread_faults.cc
  ${CMAKE_CURRENT_LIST_DIR}/timeline.cc)
target_link_libraries(rollcall_corpus PUBLIC rollcall_incident_life rollcall_sanitize)

add_executable(rollcall_corpus_score ${CMAKE_CURRENT_LIST_DIR}/score_main.cc)
set_target_properties(rollcall_corpus_score PROPERTIES RUNTIME_OUTPUT_DIRECTORY
  ${PROJECT_BINARY_DIR}/corpus)
target_link_libraries(rollcall_corpus_score PRIVATE rollcall_corpus absl::flags absl::flags_parse)

add_executable(rollcall_standstill_score ${CMAKE_CURRENT_LIST_DIR}/standstill_main.cc
  ${CMAKE_CURRENT_LIST_DIR}/standstills.cc)
set_target_properties(rollcall_standstill_score PROPERTIES RUNTIME_OUTPUT_DIRECTORY
  ${PROJECT_BINARY_DIR}/corpus)
target_link_libraries(rollcall_standstill_score PRIVATE rollcall_agents rollcall_diagnosis
  rollcall_sanitize absl::flags absl::flags_parse)

add_executable(rollcall_network_score ${CMAKE_CURRENT_LIST_DIR}/network_main.cc
  ${CMAKE_CURRENT_LIST_DIR}/network_cases.cc
  ${CMAKE_CURRENT_LIST_DIR}/network_shapes.cc
  ${CMAKE_CURRENT_LIST_DIR}/network_transfer.cc)
set_target_properties(rollcall_network_score PROPERTIES RUNTIME_OUTPUT_DIRECTORY
  ${PROJECT_BINARY_DIR}/corpus)
target_link_libraries(rollcall_network_score PRIVATE rollcall_network_diagnosis rollcall_sanitize
  absl::flags absl::flags_parse)

add_executable(corpus_test ${CMAKE_CURRENT_LIST_DIR}/corpus_test.cc)
target_link_libraries(corpus_test PRIVATE rollcall_corpus GTest::gtest_main)
include(GoogleTest)
if(ROLLCALL_SANITIZE STREQUAL "thread")
  message(STATUS "tsan: left out: corpus_test (one thread, and minutes of it)")
else()
  gtest_discover_tests(corpus_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
  add_test(NAME corpus_of_500 COMMAND rollcall_corpus_score --faults=500 --healthy=500)
  add_test(NAME standstills_of_2000 COMMAND rollcall_standstill_score)
  add_test(NAME network_of_400 COMMAND rollcall_network_score --faults=400 --healthy=400)
  set_tests_properties(corpus_of_500 standstills_of_2000 network_of_400 PROPERTIES LABELS "unit;quick"
    TIMEOUT 600)
endif()

add_executable(rollcall_corpus_dumps ${CMAKE_CURRENT_LIST_DIR}/dumps_main.cc)
set_target_properties(rollcall_corpus_dumps PROPERTIES RUNTIME_OUTPUT_DIRECTORY
  ${PROJECT_BINARY_DIR}/corpus)
target_link_libraries(rollcall_corpus_dumps PRIVATE
  rollcall_corpus nlohmann_json::nlohmann_json absl::flags absl::flags_parse)
