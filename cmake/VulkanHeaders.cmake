# Sets VKT_VULKAN_INCLUDE, the folder of Vulkan's headers. The library needs no more: it opens the loader at run time.
#
# The headers are the same for all systems. If a cross build finds no headers for its target, it copies the headers of
# this machine to <build>/vulkan-headers. It cannot include the folder of this machine, because that folder also has the
# headers of this machine's C library.
find_path(VKT_VULKAN_INCLUDE vulkan/vulkan_core.h)
if(NOT VKT_VULKAN_INCLUDE AND CMAKE_CROSSCOMPILING)
  find_path(VKT_HOST_VULKAN_INCLUDE vulkan/vulkan_core.h PATHS /usr/include /usr/local/include REQUIRED NO_CMAKE_FIND_ROOT_PATH)
  foreach(folder vulkan vk_video)
    if(EXISTS ${VKT_HOST_VULKAN_INCLUDE}/${folder})
      file(COPY ${VKT_HOST_VULKAN_INCLUDE}/${folder} DESTINATION ${PROJECT_BINARY_DIR}/vulkan-headers)
    endif()
  endforeach()
  set(VKT_VULKAN_INCLUDE ${PROJECT_BINARY_DIR}/vulkan-headers CACHE PATH "the folder of Vulkan's headers" FORCE)
elseif(NOT VKT_VULKAN_INCLUDE)
  message(FATAL_ERROR "vulkan/vulkan_core.h was not found (Debian, Ubuntu: apt install libvulkan-dev)")
endif()
