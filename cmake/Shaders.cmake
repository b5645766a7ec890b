# Compiles the entries of shaders/kernels.def to SPIR-V, and checks the modules with spirv-val, if spirv-val is installed and
# supports them. Embeds the words of the modules in one header, <build>/spirv/spirv_modules.h. The entries of shaders/tools.def
# become <build>/spirv/tools_modules.h.
#
# An entry is VKT_KERNEL(ID, file, "DEFINE ...", reads, writes, texels, flags). Its module is shaders/<file>.comp, compiled with
# -D for each DEFINE. If `texels` is not 0 (and VKT_TEXELS is on), the entry has a second module, compiled with VKT_TEXEL=1. The
# second module has the same bindings, but loads from texel buffers.
include(${CMAKE_CURRENT_LIST_DIR}/Kernels.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/KernelSets.cmake)
vkt_choose_kernels()
include(CMakeDependentOption)
cmake_dependent_option(VKT_COMPRESS_SPIRV "zlib compresses the SPIR-V in the library" ON VKT_WITH_ZLIB OFF)
set(VKT_SPIRV "" CACHE PATH "the folder spv of another build of this tree, with the same VKT_GLSLANG_COOP: its modules are embedded")
include(${CMAKE_CURRENT_LIST_DIR}/HostTools.cmake)
file(GLOB VKT_SHADER_DEPENDS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/lib/*.glsl ${PROJECT_SOURCE_DIR}/shaders/abi/*.h
  ${PROJECT_SOURCE_DIR}/include/vktrain/*.glsl)

# With a compiler that writes depfiles, a change of an included file rebuilds only the modules that include it. With another
# compiler, such a change rebuilds all modules.
execute_process(COMMAND ${GLSLANG} --help OUTPUT_VARIABLE help ERROR_QUIET)
string(FIND "${help}" "--depfile" VKT_GLSLANG_DEPFILE)

if(NOT SPIRV_VAL)
  message(STATUS "spirv-val not found: SPIR-V is not validated at build time (install spirv-tools)")
endif()

# Entries with VKT_KF_COOP need a compiler that supports GL_KHR_cooperative_matrix and GL_NV_cooperative_matrix2. Debian 12's
# compiler does not support these extensions, so VKT_GLSLANG_COOP may name another compiler. If neither compiler supports
# them, the build embeds the shipped modules of shaders/coop (see coop.cmake). If spirv-val does not support cooperative
# matrices, the modules of these entries are not checked.
set(VKT_GLSLANG_COOP "" CACHE FILEPATH "a glslangValidator for cooperative matrices, if the one on the path does not support them")
file(WRITE ${PROJECT_BINARY_DIR}/coop.comp "#version 460
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> m;
float twice(const in uint row, const in uint column, const in float v) { return 2.0 * v; }
void main()
{
    m = coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
    coopMatPerElementNV(m, m, twice);
}
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
  message(STATUS "Cooperative matrices: modules of shaders/coop, because ${GLSLANG} does not support them")
elseif(SPIRV_VAL)
  execute_process(COMMAND ${SPIRV_VAL} --target-env vulkan1.3 coop.spv
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(VKT_COOP_VALIDATOR ${SPIRV_VAL})
  else()
    message(STATUS "Cooperative matrices: not validated, because ${SPIRV_VAL} does not support them")
  endif()
endif()

# Entries with VKT_KF_BFLOAT are compiled with elements of float16. Then bfloat.c changes the type to bfloat16. Only v2025.2
# and newer versions of spirv-val can check the result (SPV_KHR_bfloat16; see the file CHANGES of SPIRV-Tools).
set(VKT_BFLOAT_VALIDATOR)
if(VKT_COOP_VALIDATOR)
  execute_process(COMMAND ${SPIRV_VAL} --version OUTPUT_VARIABLE version ERROR_QUIET)
  if(version MATCHES "SPIRV-Tools v([0-9]+\\.[0-9]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 2025.2)
    set(VKT_BFLOAT_VALIDATOR ${SPIRV_VAL})
  else()
    message(STATUS "Cooperative matrices of bfloat16: not validated, because ${SPIRV_VAL} does not support them")
  endif()
endif()

function(vkt_compile_shader compiler validator bfloat file id defines out)
  set(spv ${PROJECT_BINARY_DIR}/spv/${id}.spv)
  list(TRANSFORM defines PREPEND -D)
  set(check)
  set(tools)
  if(bfloat)
    set(check COMMAND vkt_bfloat ${spv} ${spv})
    set(tools ${VKT_HOST_FILES})
  endif()
  if(validator)
    list(APPEND check COMMAND ${validator} --target-env vulkan1.3 ${spv})
  endif()
  set(depfile)
  set(depends DEPENDS ${PROJECT_SOURCE_DIR}/shaders/${file}.comp ${tools} ${VKT_SHADER_DEPENDS})
  if(NOT VKT_GLSLANG_DEPFILE EQUAL -1)
    set(depfile --depfile ${spv}.d)
    set(depends DEPENDS ${PROJECT_SOURCE_DIR}/shaders/${file}.comp ${tools} DEPFILE ${spv}.d)
  endif()
  add_custom_command(OUTPUT ${spv}
    COMMAND ${compiler} ${VKT_GLSL_OPTIONS} ${defines} -I${PROJECT_SOURCE_DIR}/shaders -I${PROJECT_SOURCE_DIR}/include ${depfile} -o ${spv} ${PROJECT_SOURCE_DIR}/shaders/${file}.comp
    ${check}
    ${depends}
    COMMENT "shader ${id}" VERBATIM)
  set(${out} ${spv} PARENT_SCOPE)
endfunction()

# A build that embeds shipped modules first runs this check. The check fails if a shipped module does not belong to the
# sources of this tree.
file(GLOB VKT_COOP_SHIPPED CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/coop/*)
file(GLOB_RECURSE VKT_COOP_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/*.comp)
set(VKT_COOP_STAMP ${PROJECT_BINARY_DIR}/coop.stamp)
add_custom_command(OUTPUT ${VKT_COOP_STAMP}
  COMMAND ${CMAKE_COMMAND} -DSTAMP=${VKT_COOP_STAMP} -P ${PROJECT_SOURCE_DIR}/cmake/coop.cmake
  DEPENDS cmake/bfloat.c cmake/coop.cmake cmake/Kernels.cmake shaders/kernels.def shaders/tools.def ${VKT_COOP_SHIPPED} ${VKT_COOP_SOURCES}
          ${VKT_SHADER_DEPENDS}
  COMMENT "shaders/coop" VERBATIM)

# vkt_module(name file defines coop bfloat): appends the file of a module to `modules`. A command that reads the module must
# depend on the file that this function appends to `needs`. The global property VKT_COOP_FRESH lists the modules of
# cooperative matrices that this build, or the build of VKT_SPIRV, compiles.
function(vkt_module name file defines coop bfloat)
  set(compiler ${GLSLANG})
  set(validator ${SPIRV_VAL})
  if(coop)
    set(compiler ${VKT_COOP_COMPILER})
    set(validator ${VKT_COOP_VALIDATOR})
  endif()
  if(bfloat)
    set(validator ${VKT_BFLOAT_VALIDATOR})
  endif()
  if(NOT compiler)
    set(spv ${PROJECT_SOURCE_DIR}/shaders/coop/${name}.hex)
    set(need ${VKT_COOP_STAMP}) # not the .hex file: if that file is missing, coop.cmake says so more clearly than the build tool
  elseif(VKT_SPIRV)
    set(spv ${VKT_SPIRV}/${name}.spv)
    set(need ${spv})
  else()
    vkt_compile_shader("${compiler}" "${validator}" ${bfloat} ${file} ${name} "${defines}" spv)
    set(need ${spv})
  endif()
  if(coop AND compiler)
    set_property(GLOBAL APPEND PROPERTY VKT_COOP_FRESH ${spv})
  endif()
  set(modules ${modules} ${spv} PARENT_SCOPE)
  set(needs ${needs} ${need} PARENT_SCOPE)
endfunction()

# vkt_embed_shaders(target list header): compiles the entries of shaders/<list> and embeds them in <header>, which `target`
# includes. The target <target>_spirv only compiles them.
function(vkt_embed_shaders target list header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/${list})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/spv ${PROJECT_BINARY_DIR}/spirv)
  set(modules)
  set(needs)
  set(absent)
  vkt_kernel_list(${PROJECT_SOURCE_DIR} ${list} entries)
  foreach(entry IN LISTS entries)
    vkt_kernel_parse("${entry}")
    if(list STREQUAL kernels.def AND NOT id IN_LIST VKT_CHOSEN_KERNELS)
      list(APPEND absent ${id}= ${id}.texel=)
      continue()
    endif()
    vkt_module(${id} ${file} "${defines}" ${coop} ${bfloat})
    if(VKT_TEXELS AND NOT texels STREQUAL "0")
      list(APPEND defines VKT_TEXEL=1)
      vkt_module(${id}.texel ${file} "${defines}" ${coop} ${bfloat})
    else()
      list(APPEND absent ${id}.texel=)
    endif()
  endforeach()
  set(out ${PROJECT_BINARY_DIR}/spirv/${header})
  set(compress)
  if(VKT_COMPRESS_SPIRV)
    set(compress -z)
  endif()
  add_custom_command(OUTPUT ${out} COMMAND vkt_embed ${compress} ${out} ${modules} ${absent} DEPENDS ${VKT_HOST_FILES} ${needs} VERBATIM)
  add_custom_target(${target}_spirv DEPENDS ${needs})
  add_dependencies(${target} ${target}_spirv)
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/spirv)
endfunction()

# vkt_coop_targets(): adds the target coop_modules, which writes shaders/coop. Sets VKT_COOP_CHECK to the command that compares
# shaders/coop with the modules of VKT_COOP_FRESH. If VKT_COOP_FRESH is empty, the target only prints an error, and
# VKT_COOP_CHECK is empty. Call this function after the last vkt_embed_shaders.
function(vkt_coop_targets)
  get_property(fresh GLOBAL PROPERTY VKT_COOP_FRESH)
  set(VKT_COOP_CHECK PARENT_SCOPE)
  if(NOT fresh)
    add_custom_target(coop_modules VERBATIM
      COMMAND ${CMAKE_COMMAND} -E echo "coop_modules: want a compiler for cooperative matrices (cmake -DVKT_GLSLANG_COOP=PATH)"
      COMMAND ${CMAKE_COMMAND} -E false)
    return()
  endif()
  list(GET fresh 0 one)
  cmake_path(GET one PARENT_PATH spv)
  set(arguments -DSPV=${spv} -DEMBED=$<TARGET_FILE:vkt_embed> -DCOMPILER=${VKT_COOP_COMPILER})
  set(script -P ${PROJECT_SOURCE_DIR}/cmake/coop.cmake)
  add_custom_target(coop_modules COMMAND ${CMAKE_COMMAND} ${arguments} -DWRITE=ON ${script} DEPENDS ${VKT_HOST_FILES} ${fresh} VERBATIM)
  set(VKT_COOP_CHECK ${CMAKE_COMMAND} ${arguments} ${script} PARENT_SCOPE)
endfunction()
