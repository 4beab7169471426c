// A libcuda.so.1 whose writes by the GPU are plain stores, so that what is measured
// of markers is the library's own cost.
#include <cuda.h>

extern "C" {

CUresult cuStreamWriteValue64_v2(CUstream, CUdeviceptr address, cuuint64_t value, unsigned) {
  *reinterpret_cast<volatile cuuint64_t*>(address) = value;
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister_v2(void*, size_t, unsigned) { return CUDA_SUCCESS; }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned) {
  *device = reinterpret_cast<CUdeviceptr>(host);
  return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  static int the_context;
  *context = reinterpret_cast<CUcontext>(&the_context);
  return CUDA_SUCCESS;
}
}
