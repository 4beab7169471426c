# rollcall_stacks: native and Python stacks of processes, what /proc says about them, and watching
# them end. Links no gRPC.
add_library(rollcall_stacks STATIC
  "${CMAKE_CURRENT_LIST_DIR}/debug_frames.cc"
  "${CMAKE_CURRENT_LIST_DIR}/descriptor_socket.cc"
  "${CMAKE_CURRENT_LIST_DIR}/dwfl_module.cc"
  "${CMAKE_CURRENT_LIST_DIR}/elf_file.cc"
  "${CMAKE_CURRENT_LIST_DIR}/elf_symbols.cc"
  "${CMAKE_CURRENT_LIST_DIR}/jit_names.cc"
  "${CMAKE_CURRENT_LIST_DIR}/module_files.cc"
  "${CMAKE_CURRENT_LIST_DIR}/pidfd.cc"
  "${CMAKE_CURRENT_LIST_DIR}/proc_evidence.cc"
  "${CMAKE_CURRENT_LIST_DIR}/proc_files.cc"
  "${CMAKE_CURRENT_LIST_DIR}/proc_maps.cc"
  "${CMAKE_CURRENT_LIST_DIR}/process_discovery.cc"
  "${CMAKE_CURRENT_LIST_DIR}/process_memory.cc"
  "${CMAKE_CURRENT_LIST_DIR}/process_namespaces.cc"
  "${CMAKE_CURRENT_LIST_DIR}/process_watch.cc"
  "${CMAKE_CURRENT_LIST_DIR}/python/interleave.cc"
  "${CMAKE_CURRENT_LIST_DIR}/python/interpreter.cc"
  "${CMAKE_CURRENT_LIST_DIR}/python/objects.cc"
  "${CMAKE_CURRENT_LIST_DIR}/python/sampler.cc"
  "${CMAKE_CURRENT_LIST_DIR}/python/text.cc"
  "${CMAKE_CURRENT_LIST_DIR}/python/thread_names.cc"
  "${CMAKE_CURRENT_LIST_DIR}/quit_answers.cc"
  "${CMAKE_CURRENT_LIST_DIR}/sample_parts.cc"
  "${CMAKE_CURRENT_LIST_DIR}/signal_stack_taker.cc"
  "${CMAKE_CURRENT_LIST_DIR}/spare_threads.cc"
  "${CMAKE_CURRENT_LIST_DIR}/stack_questions.cc"
  "${CMAKE_CURRENT_LIST_DIR}/stack_taker.cc"
  "${CMAKE_CURRENT_LIST_DIR}/stack_unwinder.cc"
  "${CMAKE_CURRENT_LIST_DIR}/stacks.cc"
  "${CMAKE_CURRENT_LIST_DIR}/symbolizer.cc"
  "${CMAKE_CURRENT_LIST_DIR}/trace_refused.cc"
  "${CMAKE_CURRENT_LIST_DIR}/traced_thread.cc"
  "${CMAKE_CURRENT_LIST_DIR}/wait_channels.cc")
target_include_directories(rollcall_stacks PUBLIC "${CMAKE_CURRENT_LIST_DIR}/..")
target_link_libraries(rollcall_stacks
  PUBLIC rollcall_segments rollcall_python_layout absl::status absl::statusor absl::strings Threads::Threads
  PRIVATE PkgConfig::LIBUNWIND PkgConfig::LIBDW absl::str_format
          rollcall_sanitize)
