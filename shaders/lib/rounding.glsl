// rounding.glsl - makes conversions from f32 to f16 round to nearest, ties to even. Without this file, Vulkan lets the driver
// choose whether to round up or down. The device must have shaderRoundingModeRTEFloat16.
// source: SPV_KHR_float_controls. glslang has no names for the modes of this extension, so they are numbers here.
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define ROUNDING_MODE_RTE_CAPABILITY 4467
#define ROUNDING_MODE_RTE 4462
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [ROUNDING_MODE_RTE_CAPABILITY],
                     ROUNDING_MODE_RTE, 16);
