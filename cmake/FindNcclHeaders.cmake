# SPDX-License-Identifier: Apache-2.0
# Finds nccl.h and the headers of the CUDA Toolkit, and defines the target
# NcclHeaders::NcclHeaders. Finds headers only: nothing in this tree links
# against NCCL or CUDA.
#
# Searches in this order: NCCL_HOME and CUDA_HOME (variables or environment), the
# nvidia wheels of the active Python environment, system folders, and last
# build/headers, which deploy/fetch_headers.sh fills from PyPI.

set(_nccl_hints ${NCCL_HOME} $ENV{NCCL_HOME})
set(_cuda_hints ${CUDA_HOME} $ENV{CUDA_HOME} $ENV{CUDA_PATH})
if(DEFINED ENV{VIRTUAL_ENV} OR DEFINED ENV{CONDA_PREFIX})
  file(GLOB _site "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia"
                  "$ENV{CONDA_PREFIX}/lib/python3*/site-packages/nvidia")
endif()
set(_fetched "${CMAKE_CURRENT_LIST_DIR}/../build/headers/nvidia")
foreach(_root IN LISTS _site)
  list(APPEND _nccl_hints "${_root}/nccl")
  list(APPEND _cuda_hints "${_root}/cu13" "${_root}/cuda_runtime")
endforeach()

find_path(NCCL_INCLUDE_DIR nccl.h
  HINTS ${_nccl_hints} ${_cuda_hints} PATHS /usr/local/cuda PATH_SUFFIXES include)
find_path(NCCL_INCLUDE_DIR nccl.h PATHS "${_fetched}/nccl/include" NO_DEFAULT_PATH)

# cuda_runtime_api.h does not compile without crt/, which newer wheels have in another wheel.
find_path(CUDA_INCLUDE_DIR NAMES crt/host_defines.h
  HINTS ${_cuda_hints} PATHS /usr/local/cuda PATH_SUFFIXES include)
find_path(CUDA_INCLUDE_DIR crt/host_defines.h PATHS "${_fetched}/cu13/include" NO_DEFAULT_PATH)
if(CUDA_INCLUDE_DIR AND NOT EXISTS "${CUDA_INCLUDE_DIR}/cuda_runtime_api.h")
  message(STATUS "Ignoring ${CUDA_INCLUDE_DIR}: it has no cuda_runtime_api.h")
  set(CUDA_INCLUDE_DIR "CUDA_INCLUDE_DIR-NOTFOUND" CACHE PATH "" FORCE)
endif()

function(_rollcall_version header pattern out)
  set(_found "")
  if(EXISTS "${header}")
    file(STRINGS "${header}" _line REGEX "${pattern}" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+$" _found "${_line}")
  endif()
  set(${out} "${_found}" PARENT_SCOPE)
endfunction()
_rollcall_version("${NCCL_INCLUDE_DIR}/nccl.h" "#define NCCL_VERSION_CODE +[0-9]+" NCCL_HEADER_VERSION)
_rollcall_version("${CUDA_INCLUDE_DIR}/cuda_runtime_api.h" "#define CUDART_VERSION +[0-9]+" CUDART_HEADER_VERSION)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NcclHeaders
  REQUIRED_VARS NCCL_INCLUDE_DIR CUDA_INCLUDE_DIR CUDART_HEADER_VERSION
  REASON_FAILURE_MESSAGE "Cannot find nccl.h or cuda_runtime_api.h. Set NCCL_HOME and CUDA_HOME, or download the headers from PyPI: deploy/fetch_headers.sh")
if(NcclHeaders_FOUND)
  math(EXPR CUDART_MAJOR "${CUDART_HEADER_VERSION} / 1000")
  message(STATUS "NCCL header: ${NCCL_INCLUDE_DIR}/nccl.h (${NCCL_HEADER_VERSION})")
  message(STATUS "CUDA headers: ${CUDA_INCLUDE_DIR} (${CUDART_HEADER_VERSION})")
  if(NOT TARGET NcclHeaders::NcclHeaders)
    add_library(NcclHeaders::NcclHeaders INTERFACE IMPORTED)
    target_include_directories(NcclHeaders::NcclHeaders SYSTEM INTERFACE
      "${NCCL_INCLUDE_DIR}" "${CUDA_INCLUDE_DIR}")
  endif()
endif()
mark_as_advanced(NCCL_INCLUDE_DIR CUDA_INCLUDE_DIR)
