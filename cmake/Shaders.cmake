# Compiles every row of shaders/kernels.def to SPIR-V, checks it with spirv-val, and embeds the words in one
# header, <build>/spirv/spirv_modules.h.
#
# A row is VKT_KERNEL(ID, file, "DEFINE ...", reads, writes, texels, flags): shaders/<file>.comp compiled with -D for each
# DEFINE. A row whose `texels` is not 0 is compiled a second time with VKT_TEXEL=1 (same bindings, texel-buffer loads).
file(GLOB VKT_SHADER_DEPENDS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/lib/*.glsl ${PROJECT_SOURCE_DIR}/shaders/abi/*.h
  ${PROJECT_SOURCE_DIR}/include/vktrain/*.glsl)

if(NOT SPIRV_VAL)
  message(STATUS "spirv-val not found: SPIR-V is not validated at build time (install spirv-tools)")
endif()

function(vkt_compile_shader file id defines out)
  set(spv ${PROJECT_BINARY_DIR}/spv/${id}.spv)
  list(FILTER defines EXCLUDE REGEX "^$") # a row without defines
  list(TRANSFORM defines PREPEND -D)
  set(check)
  if(SPIRV_VAL)
    set(check COMMAND ${SPIRV_VAL} --target-env vulkan1.3 ${spv})
  endif()
  add_custom_command(OUTPUT ${spv}
    COMMAND ${GLSLANG} -V --quiet --target-env vulkan1.3 -DVKT_GLSL=1 ${defines} -I${PROJECT_SOURCE_DIR}/shaders
            -I${PROJECT_SOURCE_DIR}/include -o ${spv} ${PROJECT_SOURCE_DIR}/shaders/${file}.comp
    ${check}
    DEPENDS ${PROJECT_SOURCE_DIR}/shaders/${file}.comp ${VKT_SHADER_DEPENDS}
    COMMENT "shader ${id}" VERBATIM)
  set(${out} ${spv} PARENT_SCOPE)
endfunction()

function(vkt_embed_shaders target)
  set(def ${PROJECT_SOURCE_DIR}/shaders/kernels.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${def})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/spv)
  set(modules)
  set(absent)
  file(STRINGS ${def} rows REGEX "^VKT_KERNEL\\(")
  foreach(row IN LISTS rows)
    if(NOT row MATCHES "^VKT_KERNEL\\( *([A-Z0-9_]+) *, *([a-z0-9_]+) *, *\"([^\"]*)\" *,([^,]*),([^,]*),([^,]*),")
      message(FATAL_ERROR "shaders/kernels.def: malformed row: ${row}")
    endif()
    set(id ${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    string(REPLACE " " ";" defines "${CMAKE_MATCH_3}")
    string(STRIP "${CMAKE_MATCH_6}" texels)
    vkt_compile_shader(${file} ${id} "${defines}" spv)
    list(APPEND modules ${spv})
    if(NOT texels STREQUAL "0")
      vkt_compile_shader(${file} ${id}.texel "${defines};VKT_TEXEL=1" spv)
      list(APPEND modules ${spv})
    else()
      list(APPEND absent ${id}.texel=)
    endif()
  endforeach()
  add_executable(vkt_embed ${PROJECT_SOURCE_DIR}/cmake/embed.c)
  set(out ${PROJECT_BINARY_DIR}/spirv/spirv_modules.h)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/spirv)
  add_custom_command(OUTPUT ${out} COMMAND vkt_embed ${out} ${modules} ${absent} DEPENDS vkt_embed ${modules} VERBATIM)
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/spirv)
endfunction()
