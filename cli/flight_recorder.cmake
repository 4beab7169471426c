# SPDX-License-Identifier: Apache-2.0
# Reads dumps of PyTorch's Flight Recorder.
add_library(rollcall_flight_recorder STATIC
  ${CMAKE_CURRENT_LIST_DIR}/flight_recorder/dump.cc
  ${CMAKE_CURRENT_LIST_DIR}/flight_recorder/dump_files.cc
  ${CMAKE_CURRENT_LIST_DIR}/flight_recorder/exchanges.cc
  ${CMAKE_CURRENT_LIST_DIR}/flight_recorder/import.cc
  ${CMAKE_CURRENT_LIST_DIR}/flight_recorder/operations.cc
  ${CMAKE_CURRENT_LIST_DIR}/flight_recorder/pickle.cc
  ${CMAKE_CURRENT_LIST_DIR}/flight_recorder/works.cc)
target_link_libraries(rollcall_flight_recorder
  PUBLIC rollcall_diagnosis nlohmann_json::nlohmann_json absl::statusor
  PRIVATE rollcall_sanitize)
