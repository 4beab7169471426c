# Stacks of many ranks, merged. Plain values.
add_library(rollcall_stack_tree STATIC
  ${CMAKE_CURRENT_LIST_DIR}/stacks/rank_set.cc
  ${CMAKE_CURRENT_LIST_DIR}/stacks/stack_tree.cc
  ${CMAKE_CURRENT_LIST_DIR}/stacks/stack_tree_forms.cc)
target_include_directories(rollcall_stack_tree PUBLIC ${CMAKE_CURRENT_LIST_DIR}/..)
# The hash map in its header must be compiled alike by all.
target_link_libraries(rollcall_stack_tree PUBLIC absl::flat_hash_map absl::strings rollcall_sanitize
                                          PRIVATE nlohmann_json::nlohmann_json)
