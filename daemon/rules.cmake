# Everything between a JobState and the incident: pure functions on plain
# values. Links neither gRPC nor Protobuf, and never shall.
add_library(rollcall_rules STATIC
  ${CMAKE_CURRENT_LIST_DIR}/advice.cc
  ${CMAKE_CURRENT_LIST_DIR}/advice_table.cc
  ${CMAKE_CURRENT_LIST_DIR}/call_sites.cc
  ${CMAKE_CURRENT_LIST_DIR}/diagnose.cc
  ${CMAKE_CURRENT_LIST_DIR}/explain.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_sharing.cc
  ${CMAKE_CURRENT_LIST_DIR}/graphs.cc
  ${CMAKE_CURRENT_LIST_DIR}/incidents.cc
  ${CMAKE_CURRENT_LIST_DIR}/model/agreement.cc
  ${CMAKE_CURRENT_LIST_DIR}/model/arrivals.cc
  ${CMAKE_CURRENT_LIST_DIR}/model/host_clocks.cc
  ${CMAKE_CURRENT_LIST_DIR}/model/job_model.cc
  ${CMAKE_CURRENT_LIST_DIR}/model/shapes.cc
  ${CMAKE_CURRENT_LIST_DIR}/model/verdict.cc
  ${CMAKE_CURRENT_LIST_DIR}/post_mortem.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/alignment.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/blame.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/blocked_before_start.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/concurrent_use.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/deadlock.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/describe.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/divergence.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/freshness.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/host_lost.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/init_incomplete.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/mismatch.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/missing_rank.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/nccl_error.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/not_started.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/order_inversion.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/progress.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/rank_died.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/rank_exited.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/rank_map.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/rules.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/stalled_in_flight.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/straggler.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/stuck_call.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/stuck_collective.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/stuck_creation.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/stuck_p2p.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/stuck_teardown.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/teardown_hang.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/unmatched_p2p.cc
  ${CMAKE_CURRENT_LIST_DIR}/rules/wait_graph.cc
  ${CMAKE_CURRENT_LIST_DIR}/sentences.cc
  ${CMAKE_CURRENT_LIST_DIR}/steps.cc)
target_include_directories(rollcall_rules PUBLIC ${CMAKE_CURRENT_LIST_DIR}/..)
target_link_libraries(rollcall_rules PUBLIC absl::btree absl::strings absl::str_format absl::synchronization
                                            rollcall_sanitize)
