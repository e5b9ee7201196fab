(* Runs the extracted programs with the exact rationals of zarith.

   Reads requests from standard input, one a line:
     verifier V L K  p-rows  q-rows
   The rows are rationals, of all contexts of depth 0 to L (p) and 0 to L - 1 (q), shorter contexts
   first, in the order of the tokens.  Prints one line for each: the probabilities R(b) of all outputs b
   of 1 to L + 1 tokens in the same order. *)
open Verifiers

let rationals =
  { zero = Q.zero; one = Q.one; add = Q.add; subtract = Q.sub; mul = Q.mul; div = Q.div;
    max = Q.max; min = Q.min; equal = Q.equal }

(* 0, 1, .., v - 1 *)
let tokens v = List.init v (fun t -> t)

(* all lists of n tokens, in order *)
let rec texts vocabulary n =
  if n = 0 then [ [] ]
  else List.concat_map (fun x -> List.map (fun t -> x @ [ t ]) vocabulary) (texts vocabulary (n - 1))

(* the rows of all contexts of depth 0 to n, and what is left of the numbers *)
let model vocabulary n numbers =
  let table = Hashtbl.create 97 in
  let left = ref numbers in
  let next () = match !left with number :: rest -> left := rest; number | [] -> failwith "too few numbers" in
  for depth = 0 to n do
    List.iter
      (fun c -> List.iter (fun t -> Hashtbl.add table (c, t) (next ())) vocabulary)
      (texts vocabulary depth)
  done;
  ((fun c t -> Hashtbl.find table (c, t)), !left)

let call name v length drafts p q =
  let vocabulary = tokens v in
  let convention = { ratio0 = (fun _ _ -> Q.zero); h0 = (fun _ -> Q.zero); res0 = p } in
  let one_path verify =
    iteration rationals vocabulary q length (verify rationals vocabulary p q convention length) in
  match name with
  | "token" -> one_path token
  | "block" -> one_path block
  | "greedy_multipath" ->
      let lower = by_ratio rationals p q convention (fun t t' -> t < t') in
      greedy_multipath rationals vocabulary p q convention lower length (drafts - 1)
  | _ -> failwith ("no extracted verifier is called " ^ name)

let answer line =
  match String.split_on_char ' ' line with
  | name :: v :: length :: drafts :: numbers ->
      let v = int_of_string v and length = int_of_string length and drafts = int_of_string drafts in
      let vocabulary = tokens v in
      let p, rest = model vocabulary length (List.map Q.of_string numbers) in
      let q, rest = model vocabulary (length - 1) rest in
      if rest <> [] then failwith "too many numbers";
      let program = call name v length drafts p q in
      let probability b = program (fun (s, y) -> if s @ [ y ] = b then Q.one else Q.zero) in
      let outputs = List.concat_map (texts vocabulary) (List.init (length + 1) (fun i -> i + 1)) in
      String.concat " " (List.map (fun b -> Q.to_string (probability b)) outputs)
  | _ -> failwith "a request has four words and the rows"

let () =
  try
    while true do
      print_endline (answer (input_line stdin))
    done
  with End_of_file -> ()
