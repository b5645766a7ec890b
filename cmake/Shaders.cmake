# Compiles every entry of shaders/kernels.def to SPIR-V, checks it with spirv-val (if that is installed), and embeds the words in
# one header, <build>/spirv/spirv_modules.h. The entries of shaders/tools.def become <build>/spirv/tools_modules.h.
#
# An entry is VKT_KERNEL(ID, file, "DEFINE ...", reads, writes, texels, flags): shaders/<file>.comp compiled with -D for each
# DEFINE. An entry whose `texels` is not 0 is compiled a second time with VKT_TEXEL=1. The second module has
# the same bindings, but loads from texel buffers.
set(VKT_SPIRV "" CACHE PATH "where another build of this tree, with the same VKT_GLSLANG_COOP, has its spirv_modules.h: taken as it is")
file(GLOB VKT_SHADER_DEPENDS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/lib/*.glsl ${PROJECT_SOURCE_DIR}/shaders/abi/*.h
  ${PROJECT_SOURCE_DIR}/include/vktrain/*.glsl)

# With a compiler that writes depfiles, a change of an included file rebuilds only the modules that include it. With another
# compiler it rebuilds all modules.
execute_process(COMMAND ${GLSLANG} --help OUTPUT_VARIABLE help ERROR_QUIET)
string(FIND "${help}" "--depfile" VKT_GLSLANG_DEPFILE)

if(NOT SPIRV_VAL)
  message(STATUS "spirv-val not found: SPIR-V is not validated at build time (install spirv-tools)")
endif()

# Entries with VKT_KF_COOP need a compiler that supports GL_KHR_cooperative_matrix. Debian 12's compiler does not, so
# VKT_GLSLANG_COOP may name another one. If no compiler supports it, each module of these entries becomes an array of one zero,
# and gpu/coop.c is compiled with VKT_COOP_MODULES=0. If spirv-val does not support it, these modules are not checked.
set(VKT_GLSLANG_COOP "" CACHE FILEPATH "a glslangValidator for cooperative matrices, if the one on the path does not support them")
file(WRITE ${PROJECT_BINARY_DIR}/coop.comp "#version 460
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> m;
void main() { m = coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0); }
")
set(VKT_COOP_COMPILER)
set(VKT_COOP_VALIDATOR)
foreach(compiler ${GLSLANG} ${VKT_GLSLANG_COOP})
  execute_process(COMMAND ${compiler} -V --quiet --target-env vulkan1.3 -o coop.spv coop.comp
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(VKT_COOP_COMPILER ${compiler})
    break()
  endif()
endforeach()
if(NOT VKT_COOP_COMPILER)
  message(STATUS "Cooperative matrices: left out, because ${GLSLANG} does not support them (VKT_GLSLANG_COOP=PATH: a compiler that does)")
elseif(SPIRV_VAL)
  execute_process(COMMAND ${SPIRV_VAL} --target-env vulkan1.3 coop.spv
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(VKT_COOP_VALIDATOR ${SPIRV_VAL})
  else()
    message(STATUS "Cooperative matrices: not validated, because ${SPIRV_VAL} does not support them")
  endif()
endif()

function(vkt_compile_shader compiler validator file id defines out)
  set(spv ${PROJECT_BINARY_DIR}/spv/${id}.spv)
  list(FILTER defines EXCLUDE REGEX "^$") # removes the empty element of an entry without defines
  list(TRANSFORM defines PREPEND -D)
  set(check)
  if(validator)
    set(check COMMAND ${validator} --target-env vulkan1.3 ${spv})
  endif()
  set(depfile)
  set(depends DEPENDS ${PROJECT_SOURCE_DIR}/shaders/${file}.comp ${VKT_SHADER_DEPENDS})
  if(NOT VKT_GLSLANG_DEPFILE EQUAL -1)
    set(depfile --depfile ${spv}.d)
    set(depends DEPENDS ${PROJECT_SOURCE_DIR}/shaders/${file}.comp DEPFILE ${spv}.d)
  endif()
  add_custom_command(OUTPUT ${spv}
    COMMAND ${compiler} -V --quiet --target-env vulkan1.3 -DVKT_GLSL=1 ${defines} -I${PROJECT_SOURCE_DIR}/shaders
            -I${PROJECT_SOURCE_DIR}/include ${depfile} -o ${spv} ${PROJECT_SOURCE_DIR}/shaders/${file}.comp
    ${check}
    ${depends}
    COMMENT "shader ${id}" VERBATIM)
  set(${out} ${spv} PARENT_SCOPE)
endfunction()

add_executable(vkt_embed ${PROJECT_SOURCE_DIR}/cmake/embed.c)

# vkt_embed_shaders(target list header): compiles the entries of shaders/<list> and embeds them in <header>, which `target`
# includes.
function(vkt_embed_shaders target list header)
  set(def ${PROJECT_SOURCE_DIR}/shaders/${list})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${def})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/spv)
  set(modules)
  set(absent)
  file(STRINGS ${def} entries REGEX "^VKT_KERNEL\\(")
  foreach(entry IN LISTS entries)
    if(NOT entry MATCHES "^VKT_KERNEL\\( *([A-Z0-9_]+) *, *([a-z0-9_/]+) *, *\"([^\"]*)\" *,([^,]*),([^,]*),([^,]*),(.*)\\)$")
      message(FATAL_ERROR "shaders/${list}: malformed entry: ${entry}")
    endif()
    set(id ${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    string(REPLACE " " ";" defines "${CMAKE_MATCH_3}")
    string(STRIP "${CMAKE_MATCH_6}" texels)
    set(compiler ${GLSLANG})
    set(validator ${SPIRV_VAL})
    if(CMAKE_MATCH_7 MATCHES VKT_KF_COOP)
      set(compiler ${VKT_COOP_COMPILER})
      set(validator ${VKT_COOP_VALIDATOR})
    endif()
    if(NOT compiler)
      list(APPEND absent ${id}= ${id}.texel=)
      continue()
    endif()
    vkt_compile_shader("${compiler}" "${validator}" ${file} ${id} "${defines}" spv)
    list(APPEND modules ${spv})
    if(NOT texels STREQUAL "0")
      vkt_compile_shader("${compiler}" "${validator}" ${file} ${id}.texel "${defines};VKT_TEXEL=1" spv)
      list(APPEND modules ${spv})
    else()
      list(APPEND absent ${id}.texel=)
    endif()
  endforeach()
  set(out ${PROJECT_BINARY_DIR}/spirv/${header})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/spirv)
  add_custom_command(OUTPUT ${out} COMMAND vkt_embed ${out} ${modules} ${absent} DEPENDS vkt_embed ${modules} VERBATIM)
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/spirv)
endfunction()
