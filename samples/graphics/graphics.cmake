# Builds a library of the code that vkt-view, vkt-nrc and vkt-ntc share. These programs draw on their own Vulkan device.
# The library needs GLFW for windows.
set(graphics ${CMAKE_CURRENT_SOURCE_DIR}/graphics)
file(GLOB graphics_sources CONFIGURE_DEPENDS ${graphics}/*.c)
add_library(vkt_sample_graphics STATIC ${graphics_sources})
target_include_directories(vkt_sample_graphics PUBLIC ${VKT_VULKAN_INCLUDE})
target_link_libraries(vkt_sample_graphics PUBLIC vkt_sample_common PkgConfig::GLFW PkgConfig::CAIRO ${CMAKE_DL_LIBS} m
  PRIVATE vkt_options)

# vkt_graphics_program(name shader..): builds vkt-<name> from <name>/*.c. The generated header shaders.h has the SPIR-V
# of these shaders (files of <name>/shaders), and of graphics/whole.vert.
function(vkt_graphics_program name)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(MAKE_DIRECTORY ${out})
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/shaders/*.glsl ${folder}/shaders/*.h ${graphics}/*.glsl)
  set(modules)
  foreach(shader IN ITEMS ${graphics}/whole.vert ${ARGN})
    get_filename_component(stem ${shader} NAME_WE)
    get_filename_component(shader ${shader} ABSOLUTE BASE_DIR ${folder}/shaders)
    set(check)
    if(SPIRV_VAL)
      set(check COMMAND ${SPIRV_VAL} --target-env vulkan1.3 ${out}/${stem}.spv)
    endif()
    add_custom_command(OUTPUT ${out}/${stem}.spv
      COMMAND ${GLSLANG} -V --quiet --target-env vulkan1.3 -I${PROJECT_SOURCE_DIR}/include -I${folder}/shaders -I${graphics}
              -o ${out}/${stem}.spv ${shader}
      ${check}
      DEPENDS ${shader} ${headers} ${PROJECT_SOURCE_DIR}/include/vktrain/vktrain.glsl
      COMMENT "shader ${name}/${stem}" VERBATIM)
    list(APPEND modules ${out}/${stem}.spv)
  endforeach()
  add_custom_command(OUTPUT ${out}/shaders.h COMMAND vkt_embed ${out}/shaders.h ${modules} DEPENDS vkt_embed ${modules}
    VERBATIM)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
  add_executable(vkt-${name} ${sources} ${out}/shaders.h)
  target_include_directories(vkt-${name} PRIVATE ${out})
  target_link_libraries(vkt-${name} PRIVATE vkt_sample_graphics vkt_options)
endfunction()
