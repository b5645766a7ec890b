/* two_contexts.cpp - a small C++17 wrapper: handles that move and destroy themselves, and errors as exceptions with the
 * library's message. Two contexts on one device and one queue train in two threads, while the main thread uses the
 * queue too. The same seed gives the same bits in both. Written from docs/embedding.md and the public headers alone. */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <vulkan/vulkan.h>

#include <vktrain/vktrain.h>
#include <vktrain/vulkan.h>

namespace
{

/* ---- the wrapper ------------------------------------------------------------------------------------------------- */

/* Thrown when a call of the library fails. what() is what the library logged. */
class Error : public std::runtime_error
{
  public:
    Error(vkt_result r, const std::string &message)
        : std::runtime_error(std::string(vkt_result_name(r)) + ": " + message), code(r)
    {
    }
    vkt_result code;
};

/* Collects the lines that the library logs, until an error takes them. */
class Log
{
  public:
    static void line(void *self, vkt_log_level, const char *text)
    {
        Log *log = static_cast<Log *>(self);
        const std::lock_guard<std::mutex> held(log->mutex);
        log->lines += log->lines.empty() ? text : std::string("; ") + text;
    }
    void check(vkt_result r)
    {
        if (r == VKT_OK) return;
        const std::lock_guard<std::mutex> held(mutex);
        throw Error(r, std::exchange(lines, std::string()));
    }

  private:
    std::mutex mutex; /* threads of the library may log */
    std::string lines;
};

template <class T, void (*destroy)(T **)> struct Destroy {
    void operator()(T *handle) const noexcept { destroy(&handle); }
};
template <class T, void (*destroy)(T **)> using Handle = std::unique_ptr<T, Destroy<T, destroy>>;
using Graph = Handle<vkt_graph, vkt_graph_destroy>;
using Builder = Handle<vkt_builder, vkt_builder_destroy>;
using Store = Handle<vkt_store, vkt_store_destroy>;
using Program = Handle<vkt_program, vkt_program_destroy>;

/* Calls create(arguments..., &handle), and returns the handle. */
template <class H, class F, class... A> H make(Log &log, F create, A... arguments)
{
    typename H::pointer handle = nullptr;
    log.check(create(arguments..., &handle));
    return H(handle);
}

/* A context of the library, and its log. Objects that are made from it are destroyed before it. */
class Context
{
  public:
    explicit Context(const vkt_adopt_params &adopt) : log_(std::make_unique<Log>())
    {
        vkt_host host{};
        host.log = Log::line;
        host.log_user = log_.get();
        ctx_ = make<Handle<vkt_ctx, vkt_ctx_destroy>>(*log_, vkt_ctx_adopt, &adopt, nullptr, &host);
    }
    vkt_ctx *get() const { return ctx_.get(); }
    vkt_host host() const { return vkt_ctx_host(ctx_.get()); }
    Log &log() const { return *log_; }

  private:
    std::unique_ptr<Log> log_; /* outlives the context */
    Handle<vkt_ctx, vkt_ctx_destroy> ctx_;
};

/* ---- the application's device ------------------------------------------------------------------------------------ */

void vk(VkResult r)
{
    if (r != VK_SUCCESS) throw std::runtime_error("Vulkan: " + std::to_string(r));
}

class Device
{
  public:
    Device();
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    ~Device()
    {
        vkDestroyFence(device, fence, nullptr);
        vkDestroyDevice(device, nullptr);
        vkDestroyInstance(instance, nullptr);
    }
    vkt_adopt_params adopt();
    /* Submits work of the application's own, and waits for it without the lock. */
    void submit()
    {
        {
            const std::lock_guard<std::mutex> held(mutex);
            vk(vkQueueSubmit(queue, 0, nullptr, fence));
        }
        vk(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
        vk(vkResetFences(device, 1, &fence));
    }

  private:
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    uint32_t family = 0;
    VkFence fence = VK_NULL_HANDLE;
    std::mutex mutex; /* guards the queue */
};

/* Makes a device with the needs of vkt_vk_get_needs alone, because this program has no needs of its own. */
Device::Device()
{
    const vkt_vk_needs *needs = vkt_vk_get_needs();
    VkApplicationInfo about{};
    about.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    about.apiVersion = needs->api_version;
    VkInstanceCreateInfo i{};
    i.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    i.pApplicationInfo = &about;
    vk(vkCreateInstance(&i, nullptr, &instance));
    std::vector<VkPhysicalDevice> all(8);
    uint32_t n = 8;
    vkEnumeratePhysicalDevices(instance, &n, all.data());
    vkt_device_info info{};
    for (uint32_t k = 0; k < n && !info.usable; k++)
        if (vkt_vk_examine(nullptr, nullptr, instance, physical = all[k], &info) != VKT_OK) break;
    if (!info.usable) throw std::runtime_error("no usable device");
    std::vector<VkQueueFamilyProperties> families(16);
    uint32_t n_families = 16;
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &n_families, families.data());
    while ((families.at(family).queueFlags & needs->queue_flags) != needs->queue_flags) family++;
    const float priority = 1;
    VkDeviceQueueCreateInfo q{};
    q.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    q.queueFamilyIndex = family;
    q.queueCount = 1;
    q.pQueuePriorities = &priority;
    VkDeviceCreateInfo d{};
    d.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    d.pNext = needs->features;
    d.queueCreateInfoCount = 1;
    d.pQueueCreateInfos = &q;
    vk(vkCreateDevice(physical, &d, nullptr, &device));
    vkGetDeviceQueue(device, family, 0, &queue);
    VkFenceCreateInfo f{};
    f.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    vk(vkCreateFence(device, &f, nullptr, &fence));
}

vkt_adopt_params Device::adopt()
{
    vkt_adopt_params a{};
    a.instance = instance;
    a.physical_device = physical;
    a.device = device;
    a.features = vkt_vk_get_needs()->features;
    a.queue = queue;
    a.queue_family = family;
    a.lock_queue = [](void *m) { static_cast<std::mutex *>(m)->lock(); };
    a.unlock_queue = [](void *m) { static_cast<std::mutex *>(m)->unlock(); };
    a.lock_user = &mutex;
    return a;
}

/* ---- a network --------------------------------------------------------------------------------------------------- */

constexpr uint32_t batch = 64, inputs = 4, outputs = 2;

/* A network with two layers, and the program that trains it on points of a known function. */
class Network
{
  public:
    Network(const Context &c, uint64_t seed, uint32_t targets = outputs)
        : log_(&c.log()), x_(batch * inputs), y_(batch * outputs)
    {
        const vkt_host host = c.host();
        graph_ = make<Graph>(*log_, vkt_graph_create, &host);
        vkt_graph *g = graph_.get();
        const Builder b = make<Builder>(*log_, vkt_builder_create, g, true);
        vkt_nn_linear_params wide{}, narrow{};
        wide.out_features = 32;
        narrow.out_features = outputs;
        in_ = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(batch, inputs));
        target_ = vkt_input(g, "target", VKT_F32, VKT_ROWS, vkt_shape2(batch, targets));
        const vkt_tensor h = vkt_nn_relu(b.get(), vkt_nn_linear(b.get(), "fc1", in_, &wide));
        const vkt_tensor loss = vkt_mse(g, vkt_nn_linear(b.get(), "fc2", h, &narrow), target_);
        log_->check(vkt_graph_status(g)); /* the first error of all ops above */
        vkt_optimizer adam{};
        adam.kind = VKT_ADAM;
        log_->check(vkt_backward(g, loss));
        log_->check(vkt_update(g, &adam));
        vkt_report(g, loss, vkt_tensor{});
        store_ = make<Store>(*log_, vkt_store_create, c.get(), g);
        log_->check(vkt_nn_init(b.get(), store_.get(), seed));
        program_ = make<Program>(*log_, vkt_program_create, c.get(), g, store_.get(), nullptr);
    }

    /* Trains, and returns the loss of the last step. */
    float train(int steps)
    {
        vkt_metrics m{};
        vkt_run run{};
        run.lr = 0.01f;
        for (int i = 0; i < steps; i++, t_++) {
            uint64_t index = 0;
            for (size_t k = 0; k < x_.size(); k++)
                x_[k] = static_cast<float>(std::sin(1.7 * static_cast<double>(k) + 0.1 * t_));
            for (size_t k = 0; k < y_.size(); k++) y_[k] = x_[2 * k] * x_[2 * k + 1];
            write(in_, x_);
            write(target_, y_);
            log_->check(vkt_program_run(program_.get(), &run, &index));
            log_->check(vkt_program_metrics(program_.get(), index, &m));
        }
        return m.loss;
    }

    void write(vkt_tensor t, const std::vector<float> &values)
    {
        log_->check(vkt_program_write(program_.get(), t, values.data(), values.size() * sizeof(float)));
    }

    void load(const vkt_host &host, const std::string &path)
    {
        log_->check(vkt_store_load(&host, store_.get(), path.c_str())); /* the log of `host` gets the message */
    }

    std::vector<float> parameters()
    {
        std::vector<float> all;
        for (uint32_t i = 0; i < vkt_store_count(store_.get()); i++) {
            const vkt_shape s = vkt_store_shape(store_.get(), i);
            size_t n = 1;
            for (uint32_t d = 0; d < s.rank; d++) n *= s.dim[d];
            all.resize(all.size() + n);
            log_->check(vkt_store_read(store_.get(), i, VKT_PART_VALUE, all.data() + all.size() - n));
        }
        return all;
    }

    vkt_tensor in() const { return in_; }

  private:
    Log *log_;
    std::vector<float> x_, y_;
    vkt_tensor in_{}, target_{};
    int t_ = 0;
    Graph graph_; /* members are destroyed from the last to the first: program, store, graph */
    Store store_;
    Program program_;
};

struct Trained {
    Context context;
    Network network; /* destroyed first */
};

/* ---- the program ------------------------------------------------------------------------------------------------- */

void want(bool condition, const std::string &what)
{
    if (!condition) throw std::runtime_error("want " + what);
}

/* Calls f, which must throw an Error with this code and this word in its message. */
void want_error(vkt_result code, const std::string &word, const std::function<void()> &f)
{
    try {
        f();
    } catch (const Error &e) {
        std::printf("two_contexts: as planned: %s\n", e.what());
        want(e.code == code && std::strstr(e.what(), word.c_str()), vkt_result_name(code) + (" with " + word));
        return;
    }
    want(false, vkt_result_name(code) + std::string(", got no error"));
}

void planted_errors(Device &device, const Context &c, Network &n)
{
    want_error(VKT_E_SHAPE, "want", [&] { Network wrong(c, 1, outputs + 1); });
    want_error(VKT_E_ARG, "1024 bytes", [&] { n.write(n.in(), std::vector<float>(3)); });
    want_error(VKT_E_NOT_FOUND, "no/such/file", [&] { n.load(c.host(), "no/such/file"); });
    want_error(VKT_E_ARG, "lock", [&] {
        vkt_adopt_params a = device.adopt();
        a.unlock_queue = nullptr;
        Context wrong(a);
    });
    want_error(VKT_E_FEATURE, "timelineSemaphore", [&] {
        vkt_adopt_params a = device.adopt();
        a.features = nullptr; /* says that the device was made without features */
        Context wrong(a);
    });
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void run()
{
    Device device;
    const auto train = [&device](uint64_t seed) {
        Context c(device.adopt());
        Network n(c, seed);
        const float first = n.train(1), last = n.train(40);
        want(last < first, "a loss that falls");
        std::printf("two_contexts: seed %d, loss %.4f, later %.4f\n", static_cast<int>(seed), first, last);
        return Trained{ std::move(c), std::move(n) }; /* both move; what they own stays where it is */
    };
    auto one = std::async(std::launch::async, train, 1), two = std::async(std::launch::async, train, 1);
    for (int i = 0; i < 50; i++) device.submit();
    auto [c1, n1] = one.get();
    auto [c2, n2] = two.get();
    want(same_bits(n1.parameters(), n2.parameters()), "the same bits in both contexts");
    auto [c3, n3] = train(2);
    want(!same_bits(n1.parameters(), n3.parameters()), "other bits from another seed");
    planted_errors(device, c1, n1);
    n1.train(3); /* the errors have changed nothing */
    n2.train(3);
    want(same_bits(n1.parameters(), n2.parameters()), "the same bits after the errors");
}

} // namespace

int main()
{
    try {
        run();
    } catch (const std::exception &e) {
        std::fprintf(stderr, "two_contexts: %s\n", e.what());
        return 1;
    }
    return 0;
}
