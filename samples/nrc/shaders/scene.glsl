// scene.glsl - the scene: a room with a coloured wall on either side, a lamp in its ceiling, two boxes and a ball. All
// surfaces are diffuse. Lengths are in units of the room's height; y points up, and the camera looks along z.
const vec3 ROOM = vec3(NRC_ROOM_X, NRC_ROOM_Y, NRC_ROOM_Z);
const vec2 LAMP_FROM = vec2(0.45, 0.55), LAMP_TO = vec2(0.85, 0.85); // x and z of the lamp's corners
const vec3 LAMP_EMISSION = vec3(9.0, 7.8, 6.2);
const float FAR = 1e30;

struct Hit {
    float distance;
    vec3 normal, albedo;
    bool lamp;
};

struct Box {
    vec3 centre, half_size;
    vec2 turn; // cosine and sine of the box's angle about the vertical axis
};
const Box BOXES[2] = Box[2](Box(vec3(0.42, 0.3, 0.78), vec3(0.15, 0.3, 0.15), vec2(0.9397, 0.3420)),
                            Box(vec3(0.93, 0.12, 0.42), vec3(0.14, 0.12, 0.14), vec2(0.9511, -0.3090)));
const vec4 BALL = vec4(0.92, 0.37, 0.42, 0.13); // centre and radius

// Intersects a ray with an axis-aligned box around the origin. Returns the distance at which the ray enters the box, or
// FAR if the ray starts in the box or misses the box. `normal` becomes the normal of the side through which the ray
// enters.
float box_distance(vec3 origin, vec3 direction, vec3 half_size, out vec3 normal)
{
    const vec3 inverse = 1.0 / direction, middle = -origin * inverse, reach = half_size * abs(inverse);
    const vec3 enter = middle - reach, leave = middle + reach;
    const float near = max(max(enter.x, enter.y), enter.z), far = min(min(leave.x, leave.y), leave.z);
    normal = -sign(direction) * step(vec3(near), enter);
    return near < far && near > 0.0 ? near : FAR;
}

vec3 turned(vec3 v, vec2 turn)
{
    return vec3(turn.x * v.x + turn.y * v.z, v.y, turn.x * v.z - turn.y * v.x);
}

float ball_distance(vec3 origin, vec3 direction)
{
    const vec3 to = BALL.xyz - origin;
    const float along = dot(to, direction), under_root = along * along - dot(to, to) + BALL.w * BALL.w;
    const float distance = along - sqrt(max(under_root, 0.0));
    return under_root > 0.0 && distance > 0.0 ? distance : FAR;
}

// Finds the nearest box or ball.
Hit hit_object(vec3 origin, vec3 direction)
{
    Hit nearest = Hit(FAR, vec3(0.0), vec3(0.78), false);
    for (int i = 0; i < 2; i++) {
        const Box b = BOXES[i];
        vec3 normal;
        const float d = box_distance(turned(origin - b.centre, b.turn), turned(direction, b.turn), b.half_size, normal);
        if (d < nearest.distance) {
            nearest.distance = d;
            nearest.normal = turned(normal, vec2(b.turn.x, -b.turn.y));
        }
    }
    const float d = ball_distance(origin, direction);
    if (d < nearest.distance) nearest = Hit(d, normalize(origin + d * direction - BALL.xyz), vec3(0.8, 0.62, 0.25), false);
    return nearest;
}

// Finds the nearest surface. `origin` is inside the room, so every ray hits a surface.
Hit hit_scene(vec3 origin, vec3 direction)
{
    const Hit object = hit_object(origin, direction);
    const vec3 leave = mix(origin, ROOM - origin, greaterThan(direction, vec3(0.0))) / abs(direction);
    const float d = min(min(leave.x, leave.y), leave.z);
    if (object.distance < d) return object;
    const vec3 at = origin + d * direction;
    const bvec3 wall = lessThanEqual(leave, vec3(d));
    Hit hit = Hit(d, -sign(direction) * vec3(wall), vec3(0.76), false);
    if (wall.x) hit.albedo = direction.x < 0.0 ? vec3(0.63, 0.07, 0.05) : vec3(0.13, 0.45, 0.1);
    if (wall.y && direction.y > 0.0)
        hit.lamp = all(greaterThan(at.xz, LAMP_FROM)) && all(lessThan(at.xz, LAMP_TO));
    return hit;
}
