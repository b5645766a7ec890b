# Builds vkt-view from view/*.c. The header shaders.h has the compiled shaders of view/shaders.
set(view ${CMAKE_CURRENT_SOURCE_DIR}/view)
set(out ${CMAKE_CURRENT_BINARY_DIR}/view)
file(MAKE_DIRECTORY ${out})
file(GLOB headers CONFIGURE_DEPENDS ${view}/shaders/*.glsl ${view}/shaders/*.h)
set(modules)
foreach(shader IN ITEMS whole.vert texture.frag network.frag)
  get_filename_component(name ${shader} NAME_WE)
  set(check)
  if(SPIRV_VAL)
    set(check COMMAND ${SPIRV_VAL} --target-env vulkan1.3 ${out}/${name}.spv)
  endif()
  add_custom_command(OUTPUT ${out}/${name}.spv
    COMMAND ${GLSLANG} -V --quiet --target-env vulkan1.3 -I${PROJECT_SOURCE_DIR}/include -I${view}/shaders
            -o ${out}/${name}.spv ${view}/shaders/${shader}
    ${check}
    DEPENDS ${view}/shaders/${shader} ${headers} ${PROJECT_SOURCE_DIR}/include/vktrain/vktrain.glsl
    COMMENT "shader ${shader}" VERBATIM)
  list(APPEND modules ${out}/${name}.spv)
endforeach()
add_custom_command(OUTPUT ${out}/shaders.h COMMAND vkt_embed ${out}/shaders.h ${modules} DEPENDS vkt_embed ${modules}
  VERBATIM)

file(GLOB sources CONFIGURE_DEPENDS ${view}/*.c)
add_executable(vkt-view ${sources} ${out}/shaders.h)
target_include_directories(vkt-view PRIVATE ${out} ${VKT_VULKAN_INCLUDE})
target_link_libraries(vkt-view PRIVATE vkt_sample_common vkt_options PkgConfig::GLFW PkgConfig::CAIRO ${CMAKE_DL_LIBS} m)
