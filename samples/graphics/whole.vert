// whole.vert - one triangle that covers the whole viewport. `at` is (0,0) in the viewport's upper left corner and (1,1)
// in its lower right corner.
#version 460
layout(location = 0) out vec2 at;

void main()
{
    at = vec2(gl_VertexIndex << 1 & 2, gl_VertexIndex & 2);
    gl_Position = vec4(2 * at - 1, 0, 1);
}
