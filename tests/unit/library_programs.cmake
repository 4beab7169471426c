# Built for another processor too (library_aarch64.sh).
#
# What the library is preloaded into are programs that people might run: never
# built with a sanitizer.
set(_stubs "${CMAKE_BINARY_DIR}/stubs")
set(_support "${ROLLCALL_ROOT}/tests/support")
include("${_support}/stubs.cmake")
add_stub(stub_cuda cuda 1 "${_stubs}" "${_support}/stub_cuda.cc")
add_stub(stub_nccl nccl 2 "${_stubs}" "${_support}/stub_nccl.cc")
add_stub(stub_old_nccl nccl 2 "${_stubs}/old" "${_support}/stub_nccl.cc")
target_compile_definitions(stub_old_nccl PRIVATE STUB_OLD)

add_library(other_interposer MODULE "${CMAKE_CURRENT_LIST_DIR}/other_interposer.cc")
target_link_libraries(other_interposer PRIVATE NcclHeaders::NcclHeaders ${CMAKE_DL_LIBS})
add_library(fork_within MODULE "${CMAKE_CURRENT_LIST_DIR}/fork_within.cc")
target_link_libraries(fork_within PRIVATE ${CMAKE_DL_LIBS})
add_library(library_steps_plugin MODULE "${CMAKE_CURRENT_LIST_DIR}/library_steps_plugin.cc")
target_link_libraries(library_steps_plugin PRIVATE stub_nccl NcclHeaders::NcclHeaders
                                                   ${CMAKE_DL_LIBS})
# The same with an NCCL inside: as old PyTorch wheels have it, and as Horovod is linked.
foreach(_kind static symbolic)
  add_library(library_steps_plugin_${_kind} MODULE
    "${CMAKE_CURRENT_LIST_DIR}/library_steps_plugin.cc" "${_support}/stub_nccl.cc")
  target_include_directories(library_steps_plugin_${_kind} PRIVATE "${ROLLCALL_ROOT}")
  target_link_libraries(library_steps_plugin_${_kind} PRIVATE NcclHeaders::NcclHeaders
                                                              ${CMAKE_DL_LIBS})
  target_compile_options(library_steps_plugin_${_kind} PRIVATE -O0)
endforeach()
target_link_options(library_steps_plugin_symbolic PRIVATE -Wl,-Bsymbolic)
set(_plugins library_steps_plugin library_steps_plugin_static library_steps_plugin_symbolic)
foreach(_target other_interposer fork_within ${_plugins})
  set_target_properties(${_target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${_stubs}")
endforeach()

add_executable(library_steps "${CMAKE_CURRENT_LIST_DIR}/library_steps.cc")
target_include_directories(library_steps PRIVATE "${ROLLCALL_ROOT}")
target_link_libraries(library_steps PRIVATE stub_nccl stub_cuda NcclHeaders::NcclHeaders
                                            Threads::Threads)
add_executable(library_quiet "${CMAKE_CURRENT_LIST_DIR}/library_quiet.cc")
target_include_directories(library_quiet PRIVATE "${ROLLCALL_ROOT}")
target_link_libraries(library_quiet PRIVATE stub_nccl stub_cuda NcclHeaders::NcclHeaders
                                            Threads::Threads ${CMAKE_DL_LIBS})
add_executable(library_loaders "${CMAKE_CURRENT_LIST_DIR}/library_loaders.cc")
target_link_libraries(library_loaders PRIVATE ${CMAKE_DL_LIBS})
target_compile_definitions(library_loaders PRIVATE
  LIBRARY_PLUGINS="${_stubs}/liblibrary_steps_plugin")
add_dependencies(library_loaders ${_plugins})
foreach(_target library_loaders library_steps_plugin)
  target_compile_options(${_target} PRIVATE -O0)
endforeach()
foreach(_target library_steps library_quiet library_loaders)
  set_target_properties(${_target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
endforeach()
