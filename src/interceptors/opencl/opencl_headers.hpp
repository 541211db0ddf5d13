#pragma once

// All versions up to 3.0 with everything that was deprecated on the way: a program may call any of it.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

namespace xpu::interceptors::opencl {

/// The property list of clInitLayerWithProperties, which the installed headers may not know. No property is defined yet.
using LayerProperties = cl_properties;

}  // namespace xpu::interceptors::opencl
