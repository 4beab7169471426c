# Everything between a JobState and the incident: pure functions on plain
# values. Links neither gRPC nor Protobuf, and never shall.
add_library(rollcall_rules STATIC
  ${CMAKE_CURRENT_LIST_DIR}/advice.cc
  ${CMAKE_CURRENT_LIST_DIR}/diagnose.cc
  ${CMAKE_CURRENT_LIST_DIR}/incidents.cc
  ${CMAKE_CURRENT_LIST_DIR}/model/verdict.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/absence.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/argument_mismatch.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/describe.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/divergence.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/incomplete_init.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/init_incomplete.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/mismatch.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/missing_rank.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/operation_mismatch.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/progress.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/rank_died.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/rank_exited.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/rank_map.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/rules.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/stalled_in_flight.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/stuck_call.cc
  ${CMAKE_CURRENT_LIST_DIR}/sentences.cc)
target_include_directories(rollcall_rules PUBLIC ${CMAKE_CURRENT_LIST_DIR}/..)
target_link_libraries(rollcall_rules PUBLIC absl::strings absl::str_format rollcall_sanitize)
