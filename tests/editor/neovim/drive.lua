-- Headless Neovim with its own language client: a diagnostic, a code lens, a hover, a hint, then optimize and apply the
-- best suggestion as code actions. Prints one JSON object. Environment: WORK (folder), SERVER and STATS (commands, JSON
-- lists; the second tells what is in the memory).
local work = vim.env.WORK
local seen = {}

vim.lsp.config('accelopt', {
  cmd = vim.json.decode(vim.env.SERVER),
  filetypes = { 'python' },
  root_dir = work,
  init_options = { trusted = true },
})
vim.lsp.enable('accelopt')
vim.cmd('filetype on')

local function wait(what, seconds, condition)
  if not vim.wait(seconds * 1000, condition, 50) then
    io.stdout:write(vim.json.encode({ error = 'did not see ' .. what, seen = seen }))
    io.stdout:flush()
    vim.cmd('cquit 1')
  end
end

local function client()
  return vim.lsp.get_clients({ name = 'accelopt' })[1]
end

local function ask(method, params)
  local answer = client():request_sync(method, params, 60000, 0)
  return answer and answer.result
end

local function lenses()
  return ask('textDocument/codeLens', { textDocument = vim.lsp.util.make_text_document_params() }) or {}
end

local function lens(pattern)
  for _, found in ipairs(lenses()) do
    local title = found.command and found.command.title or ''
    if title:find(pattern) then return title end
  end
end

-- choose the first code action whose title matches, as a person would from the menu
local function choose(pattern)
  local chosen
  vim.ui.select = function(items, options, on_choice)
    for index, item in ipairs(items) do
      local title = options.format_item and options.format_item(item) or item.action.title
      if title:find(pattern) then
        chosen = title
        return on_choice(item, index)
      end
    end
    on_choice(nil)
  end
  vim.lsp.buf.code_action()
  vim.wait(15000, function() return chosen ~= nil end, 50)
  return chosen
end

vim.cmd.edit(work .. '/broken.py')
wait('a diagnostic', 60, function() return #vim.diagnostic.get(0) > 0 end)
seen.diagnostic = vim.diagnostic.get(0)[1].code

vim.cmd.edit(work .. '/nki_silu.py')
wait('the client', 60, function() return client() and client().initialized end)
wait('a lens with a time', 90, function() return lens('est%.') ~= nil end)
vim.cmd.write()
wait('a lens after saving', 90, function() return lens('trn1') ~= nil and not (lens('trn1')):find('profiling') end)
seen.lens = lens('trn1')

local line = vim.fn.search('^def silu')
vim.api.nvim_win_set_cursor(0, { line, 5 })
local hover = ask('textDocument/hover', vim.lsp.util.make_position_params(0, 'utf-8'))
seen.hover = hover and (hover.contents.value or hover.contents)
local range = { start = { line = 0, character = 0 }, ['end'] = { line = vim.fn.line('$'), character = 0 } }
seen.hints = #(ask('textDocument/inlayHint', { textDocument = vim.lsp.util.make_text_document_params(), range = range }) or {})

wait('the optimize action', 60, function() return choose('^Optimize silu') ~= nil end)
wait('a suggestion', 150, function() return lens(' checked: ') ~= nil end)
seen.offer = lens(' checked: ')
wait('the end of the search', 150, function() return lens('Cancel') == nil end)
local before = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
seen.action = choose('x est%.')
wait('the edit', 60, function() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') ~= before end)
vim.cmd.write()
seen.changed = true
wait('the pair in the memory', 60, function()
  local told, stats = pcall(vim.json.decode, vim.system(vim.json.decode(vim.env.STATS)):wait().stdout)
  return told and stats.pairs == 1
end)
client():stop()
wait('the server to end', 60, function() return client() == nil end)
io.stdout:write(vim.json.encode(seen))
vim.cmd('qall!')
