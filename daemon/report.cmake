# From an incident to its message, and from the message to files for people.
add_library(rollcall_report STATIC
  ${CMAKE_CURRENT_LIST_DIR}/incident_proto.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/frozen_view.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/html.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/json.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/stack_picture.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/stacks_text.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/state_table.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/text.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/words.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/wrap.cc
  ${CMAKE_CURRENT_LIST_DIR}/report/writer.cc
  ${CMAKE_CURRENT_LIST_DIR}/stacks/merge.cc)
target_link_libraries(rollcall_report PUBLIC rollcall_rules rollcall_stack_tree rollcall_proto absl::status
  absl::statusor absl::strings absl::time
  PRIVATE rollcall_page PkgConfig::OPENSSL ZLIB::ZLIB)
