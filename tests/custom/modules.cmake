# Compiles the shaders of tests/custom. Each entry of custom_modules has the name of a module, its shader, the target
# environment and macros. custom/modules.c includes the generated custom_modules.h.
set(custom_modules
  "wave wave vulkan1.2" "wave_dx wave_dx vulkan1.3" "wave_dx_wrong wave_dx vulkan1.2 FACTOR=1.05"
  "wave_dx_missing wave_dx vulkan1.2 MISSING=1" "wave_dx_stray wave_dx vulkan1.2 STRAY=8"
  "robust robust vulkan1.2" "robust_dx robust_dx vulkan1.2"
  "relu relu vulkan1.0 GRADIENT=0" "relu_dx relu vulkan1.0 GRADIENT=1" "relu_lane relu vulkan1.2 GRADIENT=0 LANES=1"
  "parts parts vulkan1.3 GRADIENT=0" "parts_dx parts vulkan1.3 GRADIENT=1" "draw draw vulkan1.2")
foreach(case RANGE 0 13)
  list(APPEND custom_modules "odd${case} odd vulkan1.2 CASE=${case}")
endforeach()
set(includes)
set(names)
set(headers)
foreach(entry IN LISTS custom_modules)
  string(REPLACE " " ";" entry "${entry}")
  list(POP_FRONT entry name shader environment)
  list(TRANSFORM entry PREPEND -D)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/custom/${name}.spv.h)
  add_custom_command(OUTPUT ${header}
    COMMAND ${GLSLANG} -V --quiet --target-env ${environment} ${entry} --vn ${name}_spv -o ${header}
            ${CMAKE_CURRENT_SOURCE_DIR}/custom/shaders/${shader}.comp
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/custom/shaders/${shader}.comp VERBATIM)
  list(APPEND headers ${header})
  string(APPEND includes "#include \"custom/${name}.spv.h\"\n")
  string(APPEND names " X(${name})")
endforeach()
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/custom)
file(CONFIGURE OUTPUT custom_modules.h CONTENT "${includes}#define CUSTOM_MODULES(X)${names}\n")
target_sources(test_custom_shared PRIVATE ${headers})
target_include_directories(test_custom_shared PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
